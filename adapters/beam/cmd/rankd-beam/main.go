// Command rankd-beam ranks the users of files in a pipeline of Apache Beam. Beam's own flags
// choose the runner: --runner prism, flink, spark or dataflow. The same program runs on the
// workers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/textio"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/rankd/rankd"
	rankdbeam "github.com/rankd/rankd/adapters/beam"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "rankd-beam:", err)
		os.Exit(1)
	}
}

func run() error {
	users := flag.String("users", "", "rank the users in files like this `pattern`: an id or a request a line")
	out := flag.String("out", "", "write the answers to this `file`")
	failed := flag.String("failed", "", "write the requests of users that failed to this `file`")
	plan := flag.String("plan_name", "", "rank with the plan of this `name`, of --plan_dir or of the examples")
	plans := flag.String("plan_dir", "", "take plans from this `folder`, in files <name>.plan.json")
	tables := flag.String("registry_dir", "", "take keys, params and endpoints from the tables of this `folder`")
	models := flag.String("model_dir", "", "take models from this `folder`")
	redis := flag.String("redis", "", "use the Redis at this `address` for every Redis endpoint")
	env := flag.String("env", "dev", "`environment`, which chooses the endpoints")
	flag.Parse()
	rankdbeam.Register(nil)
	beam.Init() // On a worker, this call does not return.
	if *users == "" || *out == "" || *failed == "" || *plan == "" {
		return errors.New("--users, --out, --failed and --plan_name are needed")
	}
	o := rankd.Options{Plan: *plan, Redis: *redis, Env: *env}
	for _, folder := range [...]struct {
		path string
		to   *fs.FS
	}{{*plans, &o.Plans}, {*tables, &o.Registry}, {*models, &o.Models}} {
		if folder.path != "" {
			*folder.to = os.DirFS(folder.path)
		}
	}
	config, err := rankdbeam.NewConfig(o, rankd.FormatFlat)
	if err != nil {
		return err
	}
	p, s := beam.NewPipelineWithRoot()
	answers, dead := rankdbeam.Rank(s, config, textio.Read(s, *users))
	textio.Write(s, *out, answers)
	textio.Write(s, *failed, rankdbeam.Requests(s, dead))
	result, err := beamx.RunWithMetrics(context.Background(), p)
	if err != nil {
		return err
	}
	for _, c := range result.Metrics().AllMetrics().Counters() {
		if c.Key.Namespace == rankdbeam.Namespace {
			fmt.Printf("%s %d\n", c.Key.Name, c.Result())
		}
	}
	return nil
}
