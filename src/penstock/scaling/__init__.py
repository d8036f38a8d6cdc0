"""Components to parallelism (Kotto-Kombi 2018; Fu et al. 2017)."""
