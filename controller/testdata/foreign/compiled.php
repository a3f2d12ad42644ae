<?php
// SPDX-License-Identifier: Apache-2.0
// Loops that the tracing compiler takes, exceptions that leave them, generators, callbacks from C.
function pairs(int $n): Generator {
    for ($i = 0; $i < $n; $i++)
        yield $i => $i * 3 % 101;
}
function step(int $i): int {
    if ($i % 1013 == 0)
        throw new DomainException("$i");
    return ($i * 31 + 7) % 97;
}
$sum = 0;
for ($turn = 0; $turn < 120; $turn++) {
    for ($i = 1; $i < 60000; $i++) {
        try {
            $sum += step($i);
        } catch (DomainException $e) {
            $sum += strlen($e->getMessage());
        }
    }
    foreach (pairs(20000) as $k => $v)
        $sum += $k ^ $v;
    $list = array_map(fn($x) => $x * $turn % 1009, range(1, 20000));
    usort($list, fn($a, $b) => $a <=> $b);
    $sum += $list[777] + strlen(preg_replace_callback('/7+/', fn($m) => "<$m[0]>", implode(',', $list)));
    gc_collect_cycles();
}
echo opcache_get_status()['jit']['on'] ? "compiled" : "interpreted", " $sum\n";
exit(7);
