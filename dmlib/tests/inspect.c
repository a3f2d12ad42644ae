/* SPDX-License-Identifier: Apache-2.0 */
/* The test controller's view of a memory file. */
#include "controller.h"

#include <poll.h>
#include <string.h>

static void *at(struct process *p, uint64_t offset) { return (char *)p->header + offset; }

struct attune_point_control *control_of(struct process *p, unsigned point) {
    return (struct attune_point_control *)at(p, p->header->control_offset) + point;
}

struct attune_slot *slot_of(struct process *p, unsigned slot) {
    return (struct attune_slot *)at(p, p->header->slot_offset) + slot;
}

struct attune_command *command_of(struct process *p, unsigned index) {
    return (struct attune_command *)at(p, p->header->mailbox_offset) + index;
}

void control_set(struct process *p, unsigned point, uint32_t word) {
    __atomic_store_n(&control_of(p, point)->word, word, __ATOMIC_RELEASE);
}

static void drain_slot(struct process *p, unsigned index, record_handler *handle, void *data) {
    struct attune_slot *slot = slot_of(p, index);
    uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
    uint64_t head = __atomic_load_n(&slot->head, __ATOMIC_ACQUIRE);
    uint32_t records = p->header->ring_records;
    if (head - p->tails[index] > records || (slot->ring == 0 && head != p->tails[index]))
        fail("slot %u: head %lu, tail %lu, ring %u", index, head, p->tails[index], slot->ring);
    for (; p->tails[index] != head; p->tails[index]++) {
        const struct attune_record *ring = at(p, p->header->ring_offset);
        const struct attune_record *record =
            &ring[(uint64_t)(slot->ring - 1) * records + (p->tails[index] & (records - 1))];
        if (p->late && record->time == 0 && record->point == 0) {
            p->unwritten++;
            continue;
        }
        if (record->point >= ATTUNE_POINT_COUNT || record->time == 0)
            fail("slot %u: record with point %u, time %lu", index, record->point, record->time);
        p->received[record->point]++;
        if (handle != NULL)
            handle(record, data);
    }
    __atomic_store_n(&slot->tail, head, __ATOMIC_RELEASE);
    if (state == ATTUNE_SLOT_CLOSED)
        __atomic_store_n(&slot->state, ATTUNE_SLOT_FREE, __ATOMIC_RELEASE);
}

uint64_t drain(struct process *p, record_handler *handle, void *data) {
    uint64_t before = 0, after = 0;
    for (unsigned i = 0; i < ATTUNE_POINT_COUNT; i++)
        before += p->received[i];
    for (unsigned i = 0; i < p->header->slot_count; i++)
        drain_slot(p, i, handle, data);
    for (unsigned i = 0; i < ATTUNE_POINT_COUNT; i++)
        after += p->received[i];
    return after - before;
}

void drain_all(struct controller *c) {
    pthread_mutex_lock(&c->lock);
    int count = c->count;
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < count; i++)
        if (c->processes[i]->header != NULL)
            drain(c->processes[i], NULL, NULL);
}

uint64_t lost(struct process *p) {
    uint64_t sum = __atomic_load_n(&p->header->lost_no_slot, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < p->header->slot_count; i++)
        sum += __atomic_load_n(&slot_of(p, i)->lost, __ATOMIC_ACQUIRE);
    return sum;
}

struct attune_aggregate aggregate_of(struct process *p, unsigned point) {
    struct attune_aggregate sum = {0};
    for (unsigned i = 0; i <= p->header->slot_count; i++) { /* the common one, too */
        const struct attune_aggregate *one = &slot_of(p, i)->aggregates[point];
        if (one->count == 0)
            continue;
        sum.count += one->count;
        sum.sum += one->sum;
        for (unsigned parity = 0; parity < 2; parity++) {
            attune_raise(&sum.least[parity], one->least[parity]);
            attune_raise(&sum.greatest[parity], one->greatest[parity]);
        }
        for (unsigned b = 0; b < ATTUNE_HIST_BUCKETS; b++)
            sum.histogram[b] += one->histogram[b];
    }
    return sum;
}

void command_post(struct process *p, unsigned index, struct attune_command command,
                  const unsigned *points, size_t point_count) {
    struct attune_command *place = command_of(p, index);
    command.state = ATTUNE_CMD_EMPTY;
    memcpy(place, &command, sizeof(command));
    __atomic_store_n(&place->state, ATTUNE_CMD_POSTED, __ATOMIC_RELEASE);
    for (size_t i = 0; i < point_count; i++)
        __atomic_or_fetch(&control_of(p, points[i])->word, ATTUNE_CTL_MAILBOX, __ATOMIC_ACQ_REL);
}

bool command_run(struct process *p, unsigned index, struct attune_command command,
                 const unsigned *points, size_t point_count) {
    struct attune_command *place = command_of(p, index);
    command_post(p, index, command, points, point_count);
    double end = now_seconds() + WAIT_SECONDS;
    while (__atomic_load_n(&place->state, __ATOMIC_ACQUIRE) != ATTUNE_CMD_DONE) {
        if (now_seconds() > end)
            return false;
        poll(NULL, 0, 1);
    }
    for (size_t i = 0; i < point_count; i++)
        __atomic_and_fetch(&control_of(p, points[i])->word, ~ATTUNE_CTL_MAILBOX, __ATOMIC_ACQ_REL);
    return true;
}
