-- Schema version 11: the ledger knows the ticks of stacks. They stand behind the last build in the column `shares` of
-- the tables ledger, series and host_total; rows of an older version do not have them, which means that they are not
-- known, until the migration step "stacks" has counted them.
ALTER TABLE segment ADD COLUMN stack_ticks INTEGER; -- of its ticks, those that have a stack; NULL: of an older version
