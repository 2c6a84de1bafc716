package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/batch"
	"github.com/rankd/rankd/internal/cmdline"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/registry"
)

const batchLong = `Rank many users, and write an answer a line, in their order.

The answers grow in a file beside the output, which gets the name of the output at the end. Killed at any point, the
same command goes on from its last checkpoint: no user is lost, and none is there twice. Users that failed go to a file
that can be run again. stdout has a summary, which counts answers that lack something, too.`

const batchExamples = `  rankd batch --users users.txt --plan_name complex_dag --out answers.jsonl
  rankd batch --users users.csv --plan plans/home.plan.ts --redis 10.0.0.5:6379 --max_commands_per_second 50000 --out answers.jsonl
  rankd batch --users answers.failed.jsonl --plan_name complex_dag --out again.jsonl   # those that failed
  rankd batch --users users.txt --plan_name complex_dag --shard 3/8 --out 3.jsonl      # an eighth of them
  rankd batch --users 'redis:user:{user}' --plan_name complex_dag --redis 10.0.0.5:6379 --out redis://10.0.0.6:6379 --out_key home`

const batchUsageTemplate = `Usage:
  {{.UseLine}}

Examples:
{{.Example}}

Flags ("-" and "_" in a name are the same):
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}

Exit status:
  0  each user has an answer
  1  users failed, or the batch did not come to its end
  2  bad usage or a bad plan
`

// batchOptions are the flags of rankd batch. Immutable once checked.
type batchOptions struct {
	options // those that it shares with the root command

	users, form, out  string
	inFlight          int
	checkpointUsers   int
	commandsPerSecond int
	shardText         string
	shard, shards     int

	usersRedis, checkpoints string
	lists                   batch.Lists
	version                 int
	bounds                  batch.Bounds
	restart, retryDegraded  bool
	settingsGiven           map[string]string // on which answers depend
}

// scans returns the template of the keys by which users are found in Redis.
func (o *batchOptions) scans() (template string, ok bool) {
	return strings.CutPrefix(o.users, "redis:")
}

// writesLists reports whether the answers go to Redis.
func (o *batchOptions) writesLists() bool { return strings.Contains(o.out, "://") }

func (o *batchOptions) withoutScan() string {
	if _, ok := o.scans(); ok {
		return ""
	}
	return "unless --users is redis:KEY"
}

func (o *batchOptions) withoutLists() string {
	if o.writesLists() {
		return ""
	}
	return "unless --out is a Redis"
}

func (o *batchOptions) settings() []cmdline.Setting {
	return slices.Concat([]cmdline.Setting{
		{Name: "users", To: &o.users, Help: "rank the users in this `file`; - is stdin, which must come again for the batch to go on; redis:user:{user} are those with such keys in Redis"},
		{Name: "users_redis", To: &o.usersRedis, Shown: "--redis", Idle: o.withoutScan, Help: "look for keys of users in the Redis at this `address`, on every master of a Redis Cluster"},
		{Name: "users_form", To: &o.form, OneOf: []string{"", string(batch.Lines), string(batch.CSV), string(batch.JSONL)}, Shown: "by the file",
			Help: "`form` of the users: lines (an id each), csv (a head with user_id, and context in further columns) or jsonl (requests as on stdin)"},
		{Name: "out", To: &o.out, Help: "write the answers to this `file`; a device or a named pipe gets them as they come; redis://host:port/db writes lists of ids to Redis"},
		{Name: "out_key", To: &o.lists.Key, Default: batch.DefaultKey, Idle: o.withoutLists, Help: "begin the keys of lists with this `text`: TEXT:version:user. TEXT itself is a sorted set, whose highest member is the version to read"},
		{Name: "out_version", To: &o.version, Least: 0, Most: math.MaxInt, Idle: o.withoutLists, Shown: "the time in milliseconds", Help: "write lists of this version, a `number` above those that are there; all shares of a batch need the same one"},
		{Name: "out_ttl_hours", To: cmdline.Duration(&o.lists.TTL, time.Hour), Default: int(batch.DefaultTTL / time.Hour), Least: 1, Most: 24 * 366, Idle: o.withoutLists, Help: "let lists expire after this `number` of hours"},
		{Name: "max_failed", To: &o.bounds.Failed, Default: batch.NoBounds.Failed, Most: 100, Shown: "10 for lists in Redis, else 100",
			Help: "keep the output back, or leave plans at the last version, if more than this `number` in a hundred users fail"},
		{Name: "max_degraded", To: &o.bounds.Degraded, Default: batch.NoBounds.Degraded, Most: 100, Shown: "1 for lists in Redis, else 100",
			Help: "the same if more than this `number` in a hundred have degraded answers, in which something is missing"},
		{Name: "max_empty", To: &o.bounds.Empty, Default: batch.NoBounds.Empty, Most: 100, Help: "the same if more than this `number` in a hundred have answers without rows"},
		{Name: "max_below_minimum", To: &o.bounds.BelowMinimum, Default: batch.NoBounds.BelowMinimum, Most: 100, Shown: "1 for lists in Redis, else 100",
			Help: "the same if more than this `number` in a hundred have answers with fewer rows than their plans want"},
		{Name: "max_fallback", To: &o.bounds.Fallback, Default: batch.NoBounds.Fallback, Most: 100, Shown: "1 for lists in Redis, else 100",
			Help: "the same if more than this `number` in a hundred have answers of a fallback, a plan in place of the one that was asked for"},
		{Name: "retry_degraded", To: &o.retryDegraded, Help: "rank users with degraded answers again at the end, fewer at a time; those that stay degraded have failed"},
		{Name: "restart", To: &o.restart, Help: "rank all again, whatever is there of a batch that has not ended"},
		{Name: "checkpoints", To: &o.checkpoints, Shown: "beside the output", Help: "say in this `file` how far a batch is that is under way"},
		{Name: "in_flight", To: &o.inFlight, Default: batch.DefaultInFlight, Least: 1, Most: 1 << 16, Help: "rank this `number` of users at the same time, and fewer while nodes run out of time"},
		{Name: "checkpoint_users", To: &o.checkpointUsers, Default: batch.DefaultCheckpointUsers, Least: 1, Most: 1 << 30,
			Help: "write a checkpoint after this `number` of users: a batch that was killed ranks no more of them again"},
		{Name: "max_commands_per_second", To: &o.commandsPerSecond, Most: 1 << 30,
			Help: "give Redis at most this `number` of commands a second, apart from those of users that are under way (0: no limit)"},
		{Name: "shard", To: &o.shardText, Default: "0/1", Help: "rank one `share` of the users, such as 3/8: the fourth of eight, by a hash of the user"},
	}, o.PlanSettings(), o.EngineSettings(), o.SchedulingSettings(), o.DeadlineSettings(), o.ResponseSettings(), o.ServedSettings(), o.RecordSettings())
}

// batchCommand returns "rankd batch".
func (p *program) batchCommand(ctx context.Context) *cobra.Command {
	o := batchOptions{options: options{tracing: true, EngineFlags: cmdline.EngineFlags{Options: p.own}}}
	cmd := &cobra.Command{
		Use: "batch", Short: "Rank many users, with checkpoints", Long: batchLong, Example: batchExamples,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			return p.rankBatch(ctx, &o)
		},
	}
	cmd.SetUsageTemplate(batchUsageTemplate)
	f := cmd.Flags()
	f.SortFlags = false
	f.SetNormalizeFunc(cmdline.Normalize)
	cmdline.AddSettings(f, o.settings())
	return cmd
}

// check reports all that is wrong with the options at once, and completes them.
func (o *batchOptions) check(given *pflag.FlagSet) error {
	idle := cmdline.IdleFlags{Given: given}
	idle.AddSettings(o.settings())
	problems := []error{o.options.check(given), cmdline.CheckSettings(given, o.settings()), idle.Problems()}
	for flag, value := range map[string]string{"users": o.users, "out": o.out} {
		if value == "" {
			problems = append(problems, fmt.Errorf("rankd batch needs --%s", flag))
		}
	}
	if o.PlanFile == "" && o.Plan == "" && o.PlansDir == "" {
		problems = append(problems, errors.New("rankd batch needs a plan: --plan_name, --plan, or --plan_dir for users that name theirs"))
	}
	one, all, _ := strings.Cut(o.shardText, "/")
	var first, second error
	o.shard, first = strconv.Atoi(one)
	o.shards, second = strconv.Atoi(all)
	if errors.Join(first, second) != nil || o.shard < 0 || o.shard >= o.shards {
		problems = append(problems, fmt.Errorf("--shard is i/n, such as 0/8 to 7/8, not %s", errtext.Quote(o.shardText)))
	}
	if o.writesLists() {
		if _, err := registry.ParseServer(o.out); err != nil {
			problems = append(problems, fmt.Errorf("--out: %w", err))
		}
		if o.shards > 1 && o.version == 0 {
			problems = append(problems, errors.New("--shard needs --out_version with lists in Redis: all shares write the same version"))
		}
		for flag, bound := range map[string][2]*int{
			"max_failed": {&o.bounds.Failed, &batch.DefaultBounds.Failed}, "max_degraded": {&o.bounds.Degraded, &batch.DefaultBounds.Degraded},
			"max_below_minimum": {&o.bounds.BelowMinimum, &batch.DefaultBounds.BelowMinimum}, "max_fallback": {&o.bounds.Fallback, &batch.DefaultBounds.Fallback},
		} {
			if !given.Changed(flag) {
				*bound[0] = *bound[1]
			}
		}
	}
	o.settingsGiven = make(map[string]string)
	for _, flag := range []string{"env", "now", "deadline_ms", "node_timeout_ms", "max_rows", "max_reply_bytes"} {
		if given.Changed(flag) {
			o.settingsGiven["--"+flag] = given.Lookup(flag).Value.String()
		}
	}
	return errors.Join(problems...)
}

// job returns the batch that the flags ask for, but for its users.
func (o *batchOptions) job(e *rankd.Engine) *batch.Job {
	job := &batch.Job{
		Engine: e, Format: o.Format(), InFlight: o.inFlight, CommandsPerSecond: o.commandsPerSecond, Shard: o.shard, Shards: o.shards, Out: o.out,
		CheckpointUsers: o.checkpointUsers, Checkpoints: o.checkpoints, Restart: o.restart, RetryDegraded: o.retryDegraded, Bounds: &o.bounds, Settings: o.settingsGiven,
	}
	if o.writesLists() {
		lists := o.lists
		lists.Redis, lists.Version = o.out, int64(o.version)
		const end = ".checkpoints"
		job.Lists, job.Out, job.Checkpoints = &lists, "", cmp.Or(o.checkpoints, strings.ReplaceAll(lists.Key, "/", "_")+end)
		job.Failed = batch.FailedFile(strings.TrimSuffix(filepath.Clean(job.Checkpoints), end))
	}
	return job
}

// rankBatch ranks the users.
func (p *program) rankBatch(ctx context.Context, o *batchOptions) (failure error) {
	p.tune(o.CPUThreads)
	redis := new(cmdline.EmbeddedRedis)
	defer redis.Close()
	e, closeServed, err := openLogged(&o.options, setting{stderr: p.stderr, plans: p.plans, redis: redis})
	if err != nil {
		return err
	}
	defer func() { failure = errors.Join(failure, closeServed()) }()
	job := o.job(e)
	if err := o.findUsers(job, p.stdin, redis.Addr()); err != nil {
		return err
	}
	job.Progress = newProgressLine(p.stderr).show
	job.Warn = func(text string) { fmt.Fprintf(p.stderr, "rankd: %s\n", text) }
	sum, err := job.Run(ctx)
	if sum.Skipped > 0 {
		job.Warn(fmt.Sprintf("%d keys that match %s have no user's id in their place", sum.Skipped, errtext.Quote(o.users)))
	}
	if lacking := sum.Lacking(); lacking != "" {
		job.Warn(lacking)
	}
	text, _ := json.Marshal(sum)
	fmt.Fprintf(p.stdout, "%s\n", text)
	switch {
	case err != nil && ctx.Err() != nil && sum.GoesOn:
		return &cmdline.RuntimeError{Err: errors.New("interrupted; the same command goes on")}
	case errors.Is(err, batch.ErrTooMany) && sum.GoesOn:
		err = fmt.Errorf("%w. The same command with a higher bound keeps the output, and --restart ranks all again", err)
		if sum.FailedFile != "" {
			err = fmt.Errorf("%w. Users that failed: %s", err, sum.FailedFile)
		}
		return &cmdline.RuntimeError{Err: err}
	case err != nil:
		return &cmdline.RuntimeError{Err: err}
	case sum.FailedFile != "":
		job.Warn(fmt.Sprintf("users that failed: %d; --users %s runs them again", sum.Failed, sum.FailedFile))
		fallthrough
	case sum.Failed > 0:
		return cmdline.ErrFailed
	}
	return nil
}

// findUsers gives a job its users. embedded is the address of the Redis in this process, or empty.
func (o *batchOptions) findUsers(job *batch.Job, stdin io.Reader, embedded string) (err error) {
	if template, ok := o.scans(); ok {
		redis := cmp.Or(o.usersRedis, o.Redis, embedded)
		if redis == "" {
			return errors.New("--users redis:KEY needs the Redis to look in: --redis or --users_redis")
		}
		if _, err := registry.ParseServer(redis); err != nil {
			return fmt.Errorf("--users_redis: %w", err)
		}
		if job.Scan, err = batch.NewScan(redis, template, job.Engine); err != nil {
			return fmt.Errorf("--users: %w", err)
		}
		return nil
	}
	in, form := stdin, batch.Form(o.form)
	if o.users != "-" {
		file, err := os.Open(o.users)
		if err != nil {
			return err
		}
		in = file
	}
	if form == "" && filepath.Ext(o.users) == ".csv" {
		form = batch.CSV
	}
	if job.Users, err = batch.NewUsers(in, form, job.Engine.Registry()); err != nil {
		return &cmdline.RuntimeError{Err: err}
	}
	return nil
}

// progressEvery is how often progress is told where nobody looks all the time.
const progressEvery = time.Minute

// barCells is how long the bar of progress is.
const barCells = 24

// A progressLine tells how far a batch has come: on a terminal a line that changes, and otherwise a line a minute. One goroutine.
type progressLine struct {
	w        io.Writer
	terminal bool
	told     time.Time
}

func newProgressLine(w io.Writer) *progressLine {
	info, err := os.Stderr.Stat() // w writes to it.
	return &progressLine{w: w, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, told: time.Now()}
}

func (l *progressLine) show(s batch.Progress) {
	line := progressText(s, l.terminal)
	switch {
	case l.terminal && s.Ended:
		fmt.Fprintf(l.w, "\r\x1b[K%s\n", line)
	case l.terminal:
		fmt.Fprintf(l.w, "\r\x1b[K%s", line)
	case time.Since(l.told) >= progressEvery:
		l.told = time.Now()
		fmt.Fprintf(l.w, "rankd: %s\n", line)
	}
}

// progressText says how far a batch has come, with a bar or without. What is left follows from what this run has ranked, and not from what was kept.
func progressText(s batch.Progress, bar bool) string {
	if s.Found > 0 {
		return fmt.Sprintf("%d keys of users found", s.Found)
	}
	line := fmt.Sprintf("%s, %d failed, %.0f a second", errtext.Count(s.Users, "user"), s.Failed, s.PerSecond)
	if s.Size == 0 || s.Read == 0 {
		return line
	}
	share := min(1, float64(s.Read)/float64(s.Size))
	line += fmt.Sprintf(", %.0f%%", 100*share)
	if done := s.Read - s.Begun; done > 0 && !s.Ended {
		line += fmt.Sprintf(", %v left", time.Duration(s.Seconds*float64(max(0, s.Size-s.Read))/float64(done)*float64(time.Second)).Round(time.Second))
	}
	if bar {
		full := int(share * barCells)
		line = "[" + strings.Repeat("#", full) + strings.Repeat(".", barCells-full) + "] " + line
	}
	return line
}
