"""`pascal-engine quantize`: a model in other number formats, tensor by tensor."""
