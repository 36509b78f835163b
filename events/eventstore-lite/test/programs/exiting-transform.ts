// A writer's transform whose thread ends while it is loaded.
process.exit(3);
