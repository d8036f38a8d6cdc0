"""Names that we give to places in Spark's plans, and find again in its plans and reports."""

EDGE = "penstock_edge_"  # prefix of the aliases that delimit operators in an analysed plan
KEYED = "penstock_keyed_"  # prefix of the aliases that name the keys of the stateful step below
METRIC = "penstock:"  # prefix of the observed metrics in a query's progress
PATH = ">"  # a metric is named after its node, then the consumers on the way to the sink
REMINDER = "reminder:"  # prefix of metrics that nobody reads; each is above a stream of no rows
