// SPDX-License-Identifier: Apache-2.0

package directive

import "testing"

func TestWrite(t *testing.T) {
	n := Need{MemoryBytes: &Amount{3 << 30, "twice"}, Cores: &Amount{2, "used"}, WallSeconds: &Amount{90061, "long"}}
	for system, want := range map[string]string{
		"slurm":      "# memory: twice\n# cores: used\n# time: long\n#SBATCH --mem=3072M\n#SBATCH --cpus-per-task=2\n#SBATCH --time=1-01:01:01\n",
		"gridengine": "# memory: twice; for each of the slots\n# cores: used\n# time: long\n#$ -l h_vmem=1536M\n#$ -pe smp 2\n#$ -l h_rt=90061\n",
		"htcondor":   "# memory: twice\n# cores: used\n# time: long\nrequest_memory = 3072 MB\nrequest_cpus = 2\nallowed_execute_duration = 90061\n",
		"snakemake":  "# memory: twice\n# cores: used\n# time: long\nthreads: 2\nresources:\n    mem_mb=3222,\n    runtime=1502\n",
		"nextflow":   "process {\n    withName: 'a\\'b' {\n        // memory: twice\n        // cores: used\n        // time: long\n        memory = 3072.MB\n        cpus = 2\n        time = 90061.s\n    }\n}\n",
	} {
		if got, known := Write(system, "a'b", n); !known || got != want {
			t.Errorf("%s:\n%s\nwant\n%s", system, got, want)
		}
	}
	if _, known := Write("cron", "", n); known {
		t.Error("cron is known")
	}
}
