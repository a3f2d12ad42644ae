// SPDX-License-Identifier: Apache-2.0

import java.util.ArrayList;
import java.util.List;

/** Has the virtual machine take its own faults: null checks, full stacks, safepoints. */
public class Traps {
    static int depth;
    int value = 1;

    static int field(Traps t) {
        try {
            return t.value;
        } catch (NullPointerException e) {
            return 2;
        }
    }

    static void fall() {
        depth++;
        fall();
    }

    static long work(int seed) {
        long sum = 0;
        Traps t = new Traps();
        for (int i = 0; i < 400_000; i++)
            sum += field((i + seed) % 7 == 0 ? null : t);
        List<byte[]> kept = new ArrayList<>();
        for (int i = 0; i < 20_000; i++) {
            kept.add(new byte[1000 + i % 100]);
            if (kept.size() > 2000)
                kept.clear();
            sum += kept.size();
        }
        return sum;
    }

    public static void main(String[] args) throws Exception {
        long[] sums = new long[4];
        for (int round = 0; round < 12; round++) {
            Thread[] threads = new Thread[sums.length];
            for (int i = 0; i < threads.length; i++) {
                final int n = i;
                threads[i] = new Thread(() -> sums[n] += work(n));
                threads[i].start();
            }
            for (Thread t : threads)
                t.join();
            try {
                fall();
            } catch (StackOverflowError e) {
                System.out.println(depth > 1000);
            }
        }
        for (long s : sums)
            System.out.println(s);
    }
}
