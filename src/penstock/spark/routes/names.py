"""Names that processes of a routed source agree on."""

OFFSET = "routes"  # the field of an offset that names the table of the batch it ends
COLUMN = "__route_"  # of the lane's rows; followed by the source's name
PROPERTY = "penstock.routes"  # a local property, because those reach executors too
