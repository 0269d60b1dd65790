-- Schema version 9: what a host holds apart after a start, until the centre has said whether the database went back. Only adds columns.

-- 1 + the number of the database (table state) before the start; 0: nothing is held.
ALTER TABLE relay ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
-- ns: differences that began before then are held, in segments of state 6: they are not sealed.
ALTER TABLE relay ADD COLUMN held_since INTEGER NOT NULL DEFAULT 0;
-- The hour of the last sign of life before the start.
ALTER TABLE relay ADD COLUMN held_hour INTEGER NOT NULL DEFAULT 0;
-- ns: the database was restored; differences that began before then count on this host only. They count as withdrawn.
ALTER TABLE relay ADD COLUMN apart_before INTEGER NOT NULL DEFAULT 0;
-- The last hour for which the centre was told so.
ALTER TABLE relay ADD COLUMN apart_hour INTEGER NOT NULL DEFAULT 0;
