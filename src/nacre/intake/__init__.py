"""How does what others keep come into a store, and how does it stay in step with a folder?"""
