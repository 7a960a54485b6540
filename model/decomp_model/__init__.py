"""How the decomposer's network is made: corpus, augmentation, network, training, export."""
