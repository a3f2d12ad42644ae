// SPDX-License-Identifier: Apache-2.0

// Has V8 take its own faults: WebAssembly that reads outside its memory.
const { Worker, isMainThread, parentPort } = require('worker_threads');

// (module (memory 1) (func (export "load") (param i32) (result i32)
//   local.get 0  i32.load))
const code = new Uint8Array([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 6, 1, 0x60, 1, 0x7f, 1, 0x7f, 3, 2, 1, 0, 5, 3, 1, 0, 1,
  7, 8, 1, 4, 0x6c, 0x6f, 0x61, 0x64, 0, 0, 10, 9, 1, 7, 0, 0x20, 0, 0x28, 2, 0, 0x0b,
]);

function work() {
  const { load } = new WebAssembly.Instance(new WebAssembly.Module(code)).exports;
  let traps = 0, zeros = 0;
  for (let i = 0; i < 60000; i++) {
    try {
      if (load(i * 4) === 0) zeros++;
    } catch (e) {
      traps++;
    }
  }
  let kept = [];
  for (let i = 0; i < 600000; i++) {
    kept.push({ i, text: 'x' + i });
    if (kept.length > 20000) kept = [];
  }
  return `${traps} ${zeros} ${kept.length}`;
}

if (isMainThread) {
  let done = 0;
  for (let i = 0; i < 3; i++)
    new Worker(__filename).on('message', (m) => {
      console.log(m);
      if (++done === 3) console.log('done');
    });
} else {
  const results = [];
  for (let i = 0; i < 4; i++) results.push(work());
  parentPort.postMessage(results.join(','));
}
