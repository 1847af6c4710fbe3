"""The cluster's metadata: the image that records add up to, and the controller that decides on new ones."""
