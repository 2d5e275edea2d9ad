"""The named parts of standard modules that generated code may import."""
