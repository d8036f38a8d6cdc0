"""Operators to components (Guo and Zhou 2017; the Order step of Kotto-Kombi 2018)."""
