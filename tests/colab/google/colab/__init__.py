"""A stand-in for Colab's own package: `import google.colab` is how code sees that it runs there.

It holds nothing. A notebook that uses a part of the real package needs that part added here.
"""
