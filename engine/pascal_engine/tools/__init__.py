"""Commands that measure, compare and convert: `bench`, `kld`, `quantize`, `ab`."""
