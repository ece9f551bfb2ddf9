"""What prices are made of: ranges, trends, an imagined future, and a guarantee that holds them."""
