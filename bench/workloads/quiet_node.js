// SPDX-License-Identifier: Apache-2.0
//
// Ordinary JavaScript for node: objects to JSON and back, sorting, words by regular
// expression.
'use strict';

let seed = 1;
const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;

let total = 0;
for (let round = 0; round < 40; round++) {
  const items = [];
  for (let i = 0; i < 60000; i++) {
    items.push({ id: i, owner: Math.floor(random() * 1000), price: random(), name: `item ${i} of ${round}` });
  }
  const back = JSON.parse(JSON.stringify(items));
  back.sort((a, b) => a.price - b.price || a.id - b.id);
  const owners = new Map();
  for (const item of back) {
    owners.set(item.owner, (owners.get(item.owner) || 0) + item.price);
    const words = /(\d+) of (\d+)/.exec(item.name);
    total += Number(words[1]) - Number(words[2]);
  }
  total += owners.size;
}
console.log(total);
