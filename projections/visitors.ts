/**
 * Registers of the HyperLogLog sketch that counts the visitors of one link on one day: the standard error is
 * 1.04/√2,048 = 2.3 %.
 */
export const VISITOR_REGISTERS = 2_048;

/** Ranks of a register: a visitor is recorded as `register * VISITOR_RANKS + rank`, rank from 1. */
export const VISITOR_RANKS = 64;
