/* SPDX-License-Identifier: Apache-2.0 */
/* hand_over against a service that answers rightly, wrongly and not at all. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../../dmlib/tests/expect.h"
#include "../handover.h"

/* Longer than any machine takes. */
enum { PATIENT_MS = 120000 };

static char folder[] = "/tmp/spankXXXXXX", path[64];

/* What stands where attuned does: it accepts one connection. */
struct service {
    int listener;
    const char *reply; /* NULL: it says nothing until the other side leaves */
    size_t piece;      /* bytes that it sends at once; 0: all */
    char request[4096];
    pthread_t thread;
};

/* Reads up to the end of the body, which Content-Length tells. */
static void read_request(int fd, char *request, size_t room) {
    size_t have = 0;
    for (;;) {
        char *body = strstr(request, "\r\n\r\n"), *length = strstr(request, "Content-Length: ");
        if (body && length && strlen(body + 4) >= strtoul(length + 16, NULL, 10))
            return;
        ssize_t n = read(fd, request + have, room - 1 - have);
        EXPECT(n > 0);
        have += (size_t)n;
        request[have] = 0;
    }
}

static void *serve(void *argument) {
    struct service *service = argument;
    int fd = accept(service->listener, NULL, NULL);
    EXPECT(fd >= 0);
    memset(service->request, 0, sizeof service->request);
    read_request(fd, service->request, sizeof service->request);
    if (service->reply) {
        size_t left = strlen(service->reply), at = 0;
        while (left > 0) {
            size_t piece = service->piece && service->piece < left ? service->piece : left;
            if (send(fd, service->reply + at, piece, MSG_NOSIGNAL) < 0)
                break; /* the other side has had enough */
            at += piece;
            left -= piece;
        }
    } else {
        struct pollfd gone = {.fd = fd, .events = POLLRDHUP};
        EXPECT(poll(&gone, 1, PATIENT_MS) == 1);
    }
    close(fd);
    return NULL;
}

static void start(struct service *service) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    service->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(bind(service->listener, (struct sockaddr *)&address, sizeof address) == 0);
    EXPECT(listen(service->listener, 8) == 0);
    EXPECT(pthread_create(&service->thread, NULL, serve, service) == 0);
}

static void stop(struct service *service) {
    EXPECT(pthread_join(service->thread, NULL) == 0);
    close(service->listener);
    unlink(path);
}

static const struct task a_task = {.pid = 7,
                                   .uid = 2001,
                                   .rank = 3,
                                   .mode = "tune",
                                   .tunlets = "malloc,mpi-progress",
                                   .objective = "",
                                   .job = "12",
                                   .step = "0"};

static char note[NOTE_BYTES]; /* of the latest hand_over */

static int ask(const char *reply, size_t piece, int budget, char answer[ANSWER_BYTES]) {
    struct service service = {.reply = reply, .piece = piece};
    start(&service);
    int result = hand_over(path, &a_task, &budget, answer, note);
    stop(&service);
    return result;
}

#define OK "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"

static void test_replies(void) {
    static const struct {
        const char *reply;
        int result;
        const char *answer;
    } rows[] = {
        {OK "ATTUNE_SOCKET=/x\nLD_PRELOAD=/y\n", 0, "ATTUNE_SOCKET=/x\nLD_PRELOAD=/y\n"},
        {OK, 0, ""},
        {"HTTP/1.1 204 No Content\r\n\r\n", 0, ""},
        {"HTTP/1.0 403 Forbidden\r\n\r\nthe policy denies it\nand more", -1,
         "attuned refuses: the policy denies it"},
        {"HTTP/1.0 302 Found\r\n\r\n", -1, "attuned refuses: "},
        {"HTTP/1.0 200 OK\r\nno end of the head", -1, "attuned: what it answers is not HTTP"},
        {"HTTP/2 200\r\n\r\nA=1\n", -1, "attuned: what it answers is not HTTP"},
        {"HTTP/1.0 OK\r\n\r\nA=1\n", -1, "attuned: what it answers is not HTTP"},
        {"A=1\r\n\r\nHTTP/1.0 200 OK\r\n\r\n", -1, "attuned: what it answers is not HTTP"},
        {"", -1, "attuned: what it answers is not HTTP"},
    };
    char answer[ANSWER_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t piece = 0; piece < 2; piece++) {
            int result = ask(rows[i].reply, piece, PATIENT_MS, answer);
            if (result == rows[i].result && strcmp(answer, rows[i].answer) == 0)
                continue;
            fprintf(stderr, "FAIL: %s: %d, %s\n", rows[i].reply, result, answer);
            exit(1);
        }
}

/* What the service says of a task that it takes comes as one line without control bytes. */
static void test_notes(void) {
    static const struct {
        const char *reply, *note;
    } rows[] = {
        {OK "A=1\r\nAttune-Note: of the body\r\n", ""},
        {"HTTP/1.0 200 OK\r\nAttune-Note: no: mode\r\nDate: now\r\n\r\nA=1\n", "no: mode"},
        {"HTTP/1.0 200 OK\r\nAttune-Note: a\33\nb\r\n\r\n", "a  b"},
    };
    char answer[ANSWER_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXPECT_EQUAL(ask(rows[i].reply, 0, PATIENT_MS, answer), 0);
        EXPECT(strcmp(note, rows[i].note) == 0);
    }
}

/* Room for all but the 0 is used; a byte more is refused. */
static void test_sizes(void) {
    static char reply[2 * REPLY_BYTES], answer[ANSWER_BYTES];
    size_t head = strlen(OK);
    strcpy(reply, OK);
    memset(reply + head, 'A', ANSWER_BYTES - 1);
    EXPECT_EQUAL(ask(reply, 0, PATIENT_MS, answer), 0);
    EXPECT_EQUAL(strlen(answer), ANSWER_BYTES - 1);
    reply[head + ANSWER_BYTES - 1] = 'A';
    EXPECT_EQUAL(ask(reply, 0, PATIENT_MS, answer), -1);
    EXPECT(strcmp(answer, "attuned: its answer is too long") == 0);
    memset(reply + head, 'A', sizeof reply - head - 1);
    EXPECT_EQUAL(ask(reply, 0, PATIENT_MS, answer), -1);
    EXPECT(strstr(answer, strerror(EMSGSIZE)) != NULL);
    /* A refusal takes the room of the words before it. */
    const char *refusal = "HTTP/1.0 403 Forbidden\r\n\r\n";
    memset(reply, 0, sizeof reply);
    strcpy(reply, refusal);
    memset(reply + strlen(refusal), 'A', ANSWER_BYTES - 1);
    EXPECT_EQUAL(ask(reply, 0, PATIENT_MS, answer), -1);
    EXPECT_EQUAL(strlen(answer), ANSWER_BYTES - 1);
}

/* A job waits no longer than its budget, and its later tasks have what is left. */
static void test_budget(void) {
    char answer[ANSWER_BYTES];
    int budget = 50;
    struct service service = {.reply = NULL};
    start(&service);
    EXPECT_EQUAL(hand_over(path, &a_task, &budget, answer, note), -1);
    stop(&service);
    EXPECT(budget <= 0);
    EXPECT(strstr(answer, strerror(ETIMEDOUT)) != NULL);
}

static void test_no_service(void) {
    char answer[ANSWER_BYTES], long_path[200];
    int budget = PATIENT_MS;
    EXPECT_EQUAL(hand_over(path, &a_task, &budget, answer, note), -1);
    EXPECT(strstr(answer, strerror(ENOENT)) != NULL);
    memset(long_path, 'a', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = 0;
    EXPECT_EQUAL(hand_over(long_path, &a_task, &budget, answer, note), -1);
    EXPECT(strstr(answer, strerror(ENAMETOOLONG)) != NULL);
}

/* write_names writes names as the request is to have them. */
static void write_names(char *to, const char *names) {
    if (*names)
        *to++ = '"';
    for (const char *at = names; *at; at++)
        to += *at == ',' ? sprintf(to, "\",\"") : sprintf(to, "%c", *at);
    strcpy(to, *names ? "\"" : "");
}

/* write_string writes what stands between the quotes of a JSON string. */
static void write_string(char *to, const char *text) {
    *to = 0;
    for (; *text; text++)
        to += *text < ' ' && *text > 0 ? sprintf(to, "\\u%04x", *text)
                                       : sprintf(to, strchr("\"\\", *text) ? "\\%c" : "%c", *text);
}

static void expect_request(const char *tunlets, const char *objective, bool may_be_too_long) {
    static char want[16384], names[4096], string[8192], answer[ANSWER_BYTES];
    struct service service = {.reply = OK};
    struct task task = a_task;
    int budget = PATIENT_MS;
    task.tunlets = tunlets;
    task.objective = objective;
    start(&service);
    int result = hand_over(path, &task, &budget, answer, note);
    if (result != 0) { /* the service still waits for somebody */
        EXPECT(may_be_too_long && strstr(answer, "are too long") != NULL);
        EXPECT_EQUAL(hand_over(path, &a_task, &budget, answer, note), 0);
    }
    stop(&service);
    write_names(names, tunlets);
    write_string(string, objective);
    snprintf(want, sizeof want,
             "\r\n\r\n{\"pid\":7,\"uid\":2001,\"mode\":\"tune\",\"tunlets\":[%s],"
             "\"objective\":\"%s\",\"rank\":3,"
             "\"job\":{\"kind\":\"slurm\",\"id\":\"12\",\"step\":\"0\"}}",
             names, string);
    EXPECT(result != 0 || strstr(service.request, want) != NULL);
    EXPECT(strncmp(service.request, "POST /v1/task HTTP/1.0\r\n", 24) == 0);
}

/* Whatever the names and the objective, all of them are told or none. */
static void test_requests(void) {
    char text[1100];
    expect_request("", "", false);
    expect_request("malloc", "", false);
    expect_request("malloc,mpi-progress", "output:^step", false);
    expect_request("",
                   "spe\xc3\xa4"
                   "d=output:([0-9.]+) \"ns\\/day\"\t\x01",
                   false);
    for (size_t length = 1; length < sizeof text; length++) {
        for (size_t i = 0; i < length; i++)
            text[i] = i % 2 ? ',' : 'a';
        text[length] = 0;
        expect_request(text, "", length > 200);
        memset(text, 'a', length);
        expect_request(text, "", length > 500);
        expect_request("", text, length > 1000);
        memset(text, '"', length);
        expect_request("", text, length > 500);
        memset(text, '\x1f', length);
        expect_request("", text, length > 160);
    }
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"replies", test_replies}, {"notes", test_notes},           {"sizes", test_sizes},
        {"budget", test_budget},   {"no service", test_no_service}, {"requests", test_requests},
    };
    EXPECT(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/socket", folder);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        tests[i].run();
        printf("ok   handover: %s\n", tests[i].name);
    }
    EXPECT(rmdir(folder) == 0);
    return 0;
}
