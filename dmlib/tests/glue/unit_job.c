/* SPDX-License-Identifier: Apache-2.0 */
/* The folder that the processes of a job share. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static char base[] = "/tmp/glueXXXXXX";

static const struct pack some_pack = {.record = {.content_hash = 0x5eed}};

static void leave(const struct job *job) {
    const int descriptors[] = {job->self, job->lock, job->join, job->early};
    for (size_t i = 0; i < sizeof(descriptors) / sizeof(descriptors[0]); i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
}

/* What a process is that enters the job, as the exit status of one that does. */
static enum role role_of_another(void) {
    pid_t child = fork();
    int status;
    if (child == 0) {
        struct job job;
        _exit(job_enter(&job, &some_pack));
    }
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool is_there(const struct job *job, const char *name) {
    char path[PATH_SIZE];
    return access(job_path(job, name, path), F_OK) == 0;
}

/* The first process makes the folder; others find it while somebody listens. */
static void check_roles(void) {
    struct job job;
    char more[PATH_SIZE];
    EXPECT_EQUAL(job_enter(&job, &some_pack), ROLE_FIRST);
    EXPECT(strncmp(job.folder, base, strlen(base)) == 0);
    EXPECT(strncmp(job.id, "packed-", 7) == 0);
    EXPECT(job_listen(&job));
    EXPECT(is_there(&job, "lock") && is_there(&job, GATE_SOCKET ".early"));
    job_unlock(&job);
    EXPECT_EQUAL(role_of_another(), ROLE_OTHER);

    /* Nobody listens any more: what is left is cleared away. */
    EXPECT(mkdir(job_path(&job, PROGRAM_FOLDER, more), 0700) == 0);
    leave(&job);
    EXPECT_EQUAL(job_enter(&job, &some_pack), ROLE_FIRST);
    EXPECT(is_there(&job, "lock") && !is_there(&job, PROGRAM_FOLDER));
    EXPECT(!is_there(&job, GATE_SOCKET ".early"));
    job_remove(&job);
    EXPECT(access(job.folder, F_OK) != 0);
    leave(&job);
}

static void id_with(char id[32], const char *name, const char *value) {
    struct job job;
    EXPECT(value == NULL ? unsetenv(name) == 0 : setenv(name, value, 1) == 0);
    EXPECT_EQUAL(job_enter(&job, &some_pack), ROLE_FIRST);
    memcpy(id, job.id, sizeof(job.id));
    job_remove(&job);
    leave(&job);
}

/* One execution is one job, however its launcher names it. */
static void check_names(void) {
    char own[32], again[32], step[32], other[32], launcher[32];
    id_with(own, "PMIX_NAMESPACE", NULL);
    id_with(again, "PMIX_NAMESPACE", NULL);
    EXPECT(strcmp(own, again) == 0);
    setenv("SLURM_JOB_ID", "7", 1);
    id_with(step, "SLURM_STEP_ID", "1");
    id_with(other, "SLURM_STEP_ID", "2");
    EXPECT(strcmp(own, step) != 0 && strcmp(step, other) != 0);
    id_with(launcher, "PMIX_NAMESPACE", "slurm.pmix.7.2"); /* counts more than the step */
    id_with(again, "SLURM_STEP_ID", "3");
    EXPECT(strcmp(launcher, other) != 0 && strcmp(launcher, again) == 0);
    unsetenv("PMIX_NAMESPACE");
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_STEP_ID");
}

#define MOST_SCRIPTS 3

static int self; /* this program, which not everybody may find by its path */

void run_rank(void) {
    char id[32];
    id_with(id, "PMI_SIZE", "2");
    EXPECT(write(atoi(getenv("PMI_FD")), id, sizeof(id)) == sizeof(id));
}

/* Executes a rank, or shells that wait for each other and for it. */
static _Noreturn void execute_rank(int connection, int scripts) {
    char number[16], program[32], *arguments[3 * MOST_SCRIPTS + 3];
    int count = 0;
    snprintf(number, sizeof(number), "%d", connection);
    snprintf(program, sizeof(program), "/proc/self/fd/%d", self);
    setenv("PMI_FD", number, 1);
    while (scripts-- > 0) {
        arguments[count++] = "sh";
        arguments[count++] = "-c";
        arguments[count++] = "\"$0\" \"$@\"; exit $?";
    }
    arguments[count++] = program;
    arguments[count++] = "rank";
    arguments[count] = NULL;
    execvp(arguments[0], arguments);
    _exit(127);
}

/* The id of a rank that this process starts, directly or by scripts. In the place of the rank's
 * end of their connection the launcher has its own, as one within a rank would; or still the
 * rank's, which it has not closed yet. */
static void id_of_rank(char id[32], int scripts, bool closed) {
    int ends[2], status;
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        EXPECT(read(ends[1], id, 1) == 1);
        execute_rank(ends[1], scripts);
    }
    if (closed)
        EXPECT(dup2(ends[0], ends[1]) == ends[1]);
    EXPECT(write(ends[0], "", 1) == 1 && read(ends[0], id, 32) == 32);
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    close(ends[0]);
    close(ends[1]);
}

/* Under PMI a job is what one launcher has started, also by scripts. */
static void check_scripts(void) {
    char direct[32], early[32], by_script[32], by_scripts[32];
    setenv("PMI_RANK", "0", 1);
    id_of_rank(direct, 0, true);
    id_of_rank(early, 0, false);
    id_of_rank(by_script, 1, true);
    id_of_rank(by_scripts, MOST_SCRIPTS, false);
    EXPECT(strcmp(direct, early) == 0);
    EXPECT(strcmp(direct, by_script) == 0 && strcmp(direct, by_scripts) == 0);
    pid_t other = fork();
    int status;
    if (other == 0) {
        id_of_rank(by_script, 1, true);
        _exit(strcmp(direct, by_script) == 0);
    }
    EXPECT(waitpid(other, &status, 0) == other && status == 0);
    unsetenv("PMI_RANK");
}

/* A folder that somebody else may write to is not used, nor one that they have
 * prepared under the job's name. */
static void check_strangers(void) {
    struct job job;
    char parent[PATH_SIZE];
    EXPECT_EQUAL(job_enter(&job, &some_pack), ROLE_FIRST);
    job_remove(&job);
    leave(&job);
    EXPECT(symlink("/tmp", job.folder) == 0);
    EXPECT_EQUAL(role_of_another(), ROLE_NONE);
    EXPECT(unlink(job.folder) == 0);
    snprintf(parent, sizeof(parent), "%s/attune", base);
    EXPECT(chmod(parent, 0777) == 0);
    /* TMPDIR is the next place. */
    snprintf(parent, sizeof(parent), "%s/attune-%u/", base, (unsigned)geteuid());
    EXPECT_EQUAL(job_enter(&job, &some_pack), ROLE_FIRST);
    EXPECT(strncmp(job.folder, parent, strlen(parent)) == 0);
    job_remove(&job);
    leave(&job);
}

static void remove_base(void) {
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", base);
    EXPECT(system(command) == 0);
}

static _Noreturn void check_job(void) {
    setenv("XDG_RUNTIME_DIR", base, 1);
    setenv("TMPDIR", base, 1);
    setenv("PMIX_NAMESPACE", "of these processes", 1);
    check_roles();
    check_strangers();
    check_names();
    check_scripts();
    _exit(0);
}

/* Not as root, who has a folder of the node's besides. */
void test_job(void) {
    enum { NOBODY = 65534 };
    int status;
    EXPECT(mkdtemp(base) != NULL && (self = open("/proc/self/exe", O_RDONLY)) >= 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        EXPECT(geteuid() != 0 ||
               (chown(base, NOBODY, NOBODY) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0));
        prctl(PR_SET_DUMPABLE, 1); /* it reads what its processes have open */
        check_job();
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    remove_base();
}
