"""How well does a store answer questions with known answers?"""
