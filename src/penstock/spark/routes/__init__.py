"""Routes on Spark: lanes write where each row's work is done, and `repartitionById` obeys."""
