"""Programs to read and run; experiments and tests take their topologies from some of them."""
