-- SPDX-License-Identifier: Apache-2.0
-- Control program: a database in memory; many small allocations, no storm.
CREATE TABLE item (id INTEGER PRIMARY KEY, owner INTEGER, price REAL, name TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000000)
INSERT INTO item SELECT i, i * 7919 % 1009, i % 9973 / 7.0, 'item ' || i FROM n;
CREATE INDEX by_owner ON item (owner, price);
SELECT count(*), sum(best) FROM (SELECT owner, max(price) AS best FROM item GROUP BY owner);
SELECT count(*) FROM item a JOIN item b ON b.id = a.id * 3 % 5000000 WHERE a.price < b.price;
SELECT group_concat(name) FROM (SELECT name FROM item WHERE owner = 17 ORDER BY price DESC LIMIT 3);
