"""The network: hyper-parameters, weights and the forward pass."""
