"""What Headrace tests itself with, shipped so that you can test with it too."""
