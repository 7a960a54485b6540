"""`pascal-engine kld`: how far one model's next-token distributions are from another's."""
