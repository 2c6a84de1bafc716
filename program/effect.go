package program

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/rankd/rankd/internal/cmdline"
)

// A job is one kind of work. Each but jobServe and jobTrace has a flag of its name, which asks
// for it.
type job string

const (
	jobServe         job = ""      // answer the requests on stdin
	jobTrace         job = "trace" // the command of this name
	jobBench         job = "bench"
	jobBenchLoop     job = "bench_eventloop"
	jobListPlans     job = "list-plans"
	jobPrintPlan     job = "print-plan-info"
	jobPrintRegistry job = "print-registry"
	jobLoadDemoData  job = "load_demo_data"
	jobVersion       job = "version"
)

// job returns what the flags ask for. They ask for one job at most.
func (o *options) job() job {
	for _, asked := range []struct {
		job job
		by  bool
	}{
		{jobTrace, o.tracing}, {jobBench, o.bench != 0}, {jobBenchLoop, o.eventLoop.Asked}, {jobListPlans, o.listPlans}, {jobPrintPlan, o.printPlanInfo},
		{jobPrintRegistry, o.printRegistry}, {jobLoadDemoData, o.loadDemoData}, {jobVersion, o.version},
	} {
		if asked.by {
			return asked.job
		}
	}
	return jobServe
}

// runsPlans reports whether a job runs plans.
func (j job) runsPlans() bool { return j == jobServe || j == jobTrace || j == jobBench }

// jobsOf returns the jobs that read a flag: nil of one that asks for a job.
func jobsOf(flag string) []job {
	switch flag {
	case "env", "registry_dir":
		return []job{jobServe, jobTrace, jobBench, jobListPlans, jobPrintPlan, jobPrintRegistry}
	case "plan_dir", "model_dir":
		return []job{jobServe, jobTrace, jobBench, jobListPlans, jobPrintPlan}
	case "plan", "plan_name":
		return []job{jobServe, jobTrace, jobBench, jobPrintPlan}
	case "redis":
		return []job{jobServe, jobTrace, jobBench, jobPrintRegistry, jobLoadDemoData}
	case "cpu_threads":
		return []job{jobServe, jobTrace, jobBench, jobBenchLoop}
	case "input", "max_inflight", "max_request_bytes", "dump-run-trace", "allow_request_scheduling", "allow_request_trace", "allow_request_explain", "allow_request_now", "allow_request_traffic":
		return []job{jobServe}
	case "response", "served_log", "served_log_key", "served_log_entries", "served_log_mb", "served_log_users", "user_key_file",
		"record", "record_users", "record_mb", "record_expire_h", "record_models", "encrypt_to":
		return []job{jobServe, jobTrace} // of commands, rankd batch alone has them
	case "bench_concurrency":
		return []job{jobBench}
	case "bench_eventloop_mode", "bench_n", "bench_producers", "bench_sleep_ms", "bench_tasks", "bench_json":
		return []job{jobBenchLoop}
	case string(jobBench), string(jobBenchLoop), string(jobListPlans), string(jobPrintPlan), string(jobPrintRegistry), string(jobLoadDemoData), string(jobVersion):
		return nil
	default: // it is of the engine
		return []job{jobServe, jobTrace, jobBench}
	}
}

// checkEffect reports each flag given that has no effect on what the others ask for. The
// usage sections of the original engine combine the flags of one job freely: a node timeout
// without a plan, the number of timers for a measurement of posts. Such combinations stay.
func (o *options) checkEffect(given *pflag.FlagSet) error {
	asked := o.job()
	idle := cmdline.IdleFlags{Given: given}
	given.Visit(func(f *pflag.Flag) {
		switch jobs := jobsOf(f.Name); {
		case len(jobs) == 0, slices.Contains(jobs, asked):
		case asked != jobServe:
			idle.Add(f.Name, "with --"+string(asked))
		default:
			idle.Add(f.Name, "without --"+string(jobs[0]))
		}
	})
	if asked.runsPlans() {
		idle.AddSettings(o.settings())
	}
	if (asked == jobBench || asked == jobPrintPlan) && o.PlanFile != "" {
		idle.Add("plan_dir", "with --plan and --"+string(asked))
	}
	return idle.Problems()
}
