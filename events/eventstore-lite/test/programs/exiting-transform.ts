// Module for the option `writerTransform` that ends the writer thread while the thread loads the module.
process.exit(3);
