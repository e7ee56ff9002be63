//! Jobs: queue, lanes, deadlines, cancel; schedules and their cursor; the single writer of the ledger (design §10).
