/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm plugin: `srun --attune[=MODE] ...`, `sbatch --attune[=MODE] ...`.
 *
 * On each node slurmstepd tells the node's attuned of every task while the task
 * is still held before its exec, and lets the task have the environment that
 * attuned answers with. A job never fails because of this, and waits no longer
 * than the budget: what does not work is said once and left.
 *
 * plugstack.conf: optional spank_attune.so [socket=PATH] [budget=MS] [default=MODE]
 */
#include "handover.h"

#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED extern const char plugin_name[], plugin_type[];
EXPORTED extern const unsigned int plugin_version;
SPANK_PLUGIN(attune, 1)

/* The hooks of one process of Slurm are called one after the other. */
static struct {
    char socket[108];
    char mode[16];       /* off, observe, advise, tune; empty: nobody has said */
    char tunlets[256];   /* names with commas between them */
    char objective[512]; /* as the user wrote it */
    bool asked;          /* by the user, who is told what does not work */
    bool noted;          /* the user has been told what the step does not get */
    int budget_ms;       /* what is left for the tasks of this step */
    uint32_t tasks;
    /* One answer per task of the step: written by slurmstepd before it lets the
     * task go on, read by the task. NULL: there is none. */
    char (*answers)[ANSWER_BYTES];
} state = {.socket = "/run/attune/attuned.sock", .budget_ms = 250};

static bool known_mode(const char *mode) {
    static const char *const modes[] = {"off", "observe", "advise", "tune"};
    size_t i;

    for (i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(mode, modes[i]) == 0)
            return true;
    return false;
}

/* known_names says whether text is names with commas between them. */
static bool known_names(const char *text) {
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_,") == strlen(text) &&
           strlen(text) < sizeof state.tunlets;
}

static int choose_mode(int val, const char *mode, int remote) {
    (void)val, (void)remote;
    /* Without an argument, Slurm 22.05 passes it on to a job's script as an empty
     * text, and to the steps in it as this one. */
    if (!mode || !*mode || strcmp(mode, "(null)") == 0)
        mode = "tune";
    if (!known_mode(mode)) {
        slurm_error("--attune=%s: want off, observe, advise or tune", mode);
        return ESPANK_ERROR;
    }
    strcpy(state.mode, mode);
    state.asked = true;
    return ESPANK_SUCCESS;
}

static int choose_tunlets(int val, const char *names, int remote) {
    (void)val, (void)remote;
    if (!names || !known_names(names)) {
        slurm_error("--attune-tunlets: want names with commas between them");
        return ESPANK_ERROR;
    }
    strcpy(state.tunlets, names);
    return ESPANK_SUCCESS;
}

static int choose_objective(int val, const char *text, int remote) {
    (void)val, (void)remote;
    if (!text || !*text || strlen(text) >= sizeof state.objective) {
        slurm_error("--attune-objective: want a text of at most %zu bytes, such as output:^step",
                    sizeof state.objective - 1);
        return ESPANK_ERROR;
    }
    strcpy(state.objective, text);
    return ESPANK_SUCCESS;
}

/* has_arg: 2 is "may have one". */
static struct spank_option mode_option = {
    "attune", "mode", "let attune tune the job's tasks; mode is tune, advise, observe or off",
    2,        0,      choose_mode};
static struct spank_option tunlets_option = {
    "attune-tunlets", "names", "what attune looks for: names of tunlets, all without it", 1, 0,
    choose_tunlets};
static struct spank_option objective_option = {
    "attune-objective", "what", "what attune is to make better, such as output:^step", 1, 0,
    choose_objective};

/* configure reads one argument of plugstack.conf. */
static void configure(const char *argument) {
    if (strncmp(argument, "socket=", 7) == 0 && strlen(argument + 7) < sizeof state.socket)
        strcpy(state.socket, argument + 7);
    else if (strncmp(argument, "budget=", 7) == 0 && atoi(argument + 7) > 0)
        state.budget_ms = atoi(argument + 7);
    else if (strncmp(argument, "default=", 8) == 0 && known_mode(argument + 8))
        strcpy(state.mode, argument + 8);
    else
        slurm_error("attune: plugstack.conf: %s is not understood and left out", argument);
}

EXPORTED int slurm_spank_init(spank_t spank, int argc, char **argv) {
    int i;

    if (spank_context() == S_CTX_SLURMD || spank_context() == S_CTX_JOB_SCRIPT)
        return ESPANK_SUCCESS;
    for (i = 0; i < argc; i++)
        configure(argv[i]);
    if (spank_option_register(spank, &mode_option) != ESPANK_SUCCESS ||
        spank_option_register(spank, &tunlets_option) != ESPANK_SUCCESS ||
        spank_option_register(spank, &objective_option) != ESPANK_SUCCESS)
        slurm_error("attune: there is no --attune: its options cannot be registered");
    return ESPANK_SUCCESS;
}

static bool wanted(void) { return state.mode[0] && strcmp(state.mode, "off") != 0; }

/* In slurmstepd, before it forks the tasks. */
EXPORTED int slurm_spank_user_init(spank_t spank, int argc, char **argv) {
    (void)argc, (void)argv;
    if (!spank_remote(spank))
        return ESPANK_SUCCESS;
    if (!wanted() ||
        spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &state.tasks) != ESPANK_SUCCESS ||
        state.tasks == 0)
        return ESPANK_SUCCESS;
    state.answers = mmap(NULL, state.tasks * ANSWER_BYTES, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (state.answers == MAP_FAILED)
        state.answers = NULL; /* the tasks do without an environment */
    return ESPANK_SUCCESS;
}

/* write_step returns false for what is no task of the user's. */
static bool write_step(char *to, size_t size, uint32_t step) {
    if (step == SLURM_EXTERN_CONT)
        return false;
    if (step == SLURM_BATCH_SCRIPT)
        snprintf(to, size, "batch");
    else if (step == SLURM_INTERACTIVE_STEP)
        snprintf(to, size, "interactive");
    else
        snprintf(to, size, "%u", step);
    return true;
}

/* give_up leaves the step's other tasks alone. */
static void give_up(const char *reason) {
    char host[64] = "";

    gethostname(host, sizeof host - 1);
    if (state.asked)
        slurm_spank_log("attune: %s: %s; the job runs without it here", host, reason);
    else
        slurm_info("attune: %s: %s", host, reason);
    state.mode[0] = 0;
}

/* pass_on says once in a step what its tasks asked for and do not get. */
static void pass_on(const char *note) {
    char host[64] = "";

    if (!note[0] || !state.asked || state.noted)
        return;
    gethostname(host, sizeof host - 1);
    slurm_spank_log("attune: %s: %s", host, note);
    state.noted = true;
}

/* In slurmstepd, as root; the task waits for it before its exec. */
EXPORTED int slurm_spank_task_post_fork(spank_t spank, int argc, char **argv) {
    char job[16], step[16], answer[ANSWER_BYTES], note[NOTE_BYTES];
    struct task task = {.mode = state.mode,
                        .tunlets = state.tunlets,
                        .objective = state.objective,
                        .job = job,
                        .step = step};
    uint32_t job_id = 0, step_id = 0;
    int local = 0;

    (void)argc, (void)argv;
    if (!wanted() || spank_get_item(spank, S_JOB_ID, &job_id) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_STEPID, &step_id) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_UID, &task.uid) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_TASK_ID, &local) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_TASK_GLOBAL_ID, &task.rank) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_TASK_PID, &task.pid) != ESPANK_SUCCESS)
        return ESPANK_SUCCESS;
    if (!write_step(step, sizeof step, step_id))
        return ESPANK_SUCCESS;
    snprintf(job, sizeof job, "%u", job_id);
    if (hand_over(state.socket, &task, &state.budget_ms, answer, note) < 0) {
        give_up(answer);
        return ESPANK_SUCCESS;
    }
    pass_on(note);
    if (state.answers && local >= 0 && (uint32_t)local < state.tasks)
        memcpy(state.answers[local], answer, sizeof answer);
    return ESPANK_SUCCESS;
}

/* add puts NAME=VALUE into the task's environment. What the user preloads comes
 * after what attune preloads. */
static void add(spank_t spank, char *line) {
    char *value = strchr(line, '=');
    char preloaded[4096], joined[sizeof preloaded + ANSWER_BYTES];

    if (!value)
        return;
    *value++ = 0;
    if (strcmp(line, "LD_PRELOAD") != 0 && strncmp(line, "ATTUNE", 6) != 0)
        return;
    if (strcmp(line, "LD_PRELOAD") == 0) {
        spank_err_t have = spank_getenv(spank, line, preloaded, sizeof preloaded);

        if (have != ESPANK_SUCCESS && have != ESPANK_ENV_NOEXIST)
            return; /* longer than there is room: it stays as it is */
        if (have == ESPANK_SUCCESS && preloaded[0]) {
            snprintf(joined, sizeof joined, "%s:%s", value, preloaded);
            value = joined;
        }
    }
    spank_setenv(spank, line, value, 1);
}

/* In the task, as the user, just before its exec. */
EXPORTED int slurm_spank_task_init(spank_t spank, int argc, char **argv) {
    char *line, *rest;
    int local = -1;

    (void)argc, (void)argv;
    if (!state.answers || spank_get_item(spank, S_TASK_ID, &local) != ESPANK_SUCCESS || local < 0 ||
        (uint32_t)local >= state.tasks)
        return ESPANK_SUCCESS;
    for (line = strtok_r(state.answers[local], "\r\n", &rest); line;
         line = strtok_r(NULL, "\r\n", &rest))
        add(spank, line);
    return ESPANK_SUCCESS;
}
