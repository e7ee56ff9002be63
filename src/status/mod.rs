//! The one status that everything shows: folded from what the ledger holds and what is the case now (law 3).
