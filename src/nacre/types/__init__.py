"""The values of the public interface and between packages. All are frozen; every default is defined here."""
