package rankdbeam

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/rankd/rankd"
)

// Config is what a worker opens an engine with. Config travels with the pipeline. So a password
// belongs in a file or in the environment of the workers: see registry.ParseServer. Immutable.
type Config struct {
	Redis, Env, Plan, PlanFile string
	PlanText                   []byte
	Plans, Registry, Models    []byte // folders, each as a ZIP archive; nil: there is none

	Model                        rankd.Model
	CPUThreads, RedisConnections int
	MaxRows, MaxReplyBytes       int
	Timeout, NodeTimeout         time.Duration
	Format                       rankd.Format
}

// NewConfig returns the options that a worker takes from the pipeline, with the files of their folders. It reads PlanFile. Options that are functions, tasks or
// sinks stay behind: see [Register].
func NewConfig(o rankd.Options, f rankd.Format) (Config, error) {
	c := Config{
		Redis: o.Redis, Env: o.Env, Plan: o.Plan, PlanFile: o.PlanFile, PlanText: o.PlanText, Model: o.Model, CPUThreads: o.CPUThreads,
		RedisConnections: o.RedisConnections, MaxRows: o.MaxRows, MaxReplyBytes: o.MaxReplyBytes, Timeout: o.Timeout, NodeTimeout: o.NodeTimeout, Format: f,
	}
	var err error
	if c.PlanFile != "" && c.PlanText == nil {
		c.PlanText, err = os.ReadFile(c.PlanFile)
	}
	for _, folder := range [...]struct {
		from fs.FS
		to   *[]byte
	}{{o.Plans, &c.Plans}, {o.Registry, &c.Registry}, {o.Models, &c.Models}} {
		if folder.from != nil && err == nil {
			*folder.to, err = pack(folder.from)
		}
	}
	return c, err
}

// pack returns a folder as a ZIP archive.
func pack(folder fs.FS) ([]byte, error) {
	var text bytes.Buffer
	w := zip.NewWriter(&text)
	err := errors.Join(w.AddFS(folder), w.Close())
	return text.Bytes(), err
}

// options returns the options of the engine.
func (c *Config) options() (rankd.Options, error) {
	o := rankd.Options{
		Redis: c.Redis, Env: c.Env, Plan: c.Plan, PlanFile: c.PlanFile, PlanText: c.PlanText, Model: c.Model, CPUThreads: c.CPUThreads,
		RedisConnections: c.RedisConnections, MaxRows: c.MaxRows, MaxReplyBytes: c.MaxReplyBytes, Timeout: c.Timeout, NodeTimeout: c.NodeTimeout, ClientName: "rankd-beam",
	}
	for _, folder := range [...]struct {
		from []byte
		to   *fs.FS
	}{{c.Plans, &o.Plans}, {c.Registry, &o.Registry}, {c.Models, &o.Models}} {
		if folder.from == nil {
			continue
		}
		files, err := zip.NewReader(bytes.NewReader(folder.from), int64(len(folder.from)))
		if err != nil {
			return o, fmt.Errorf("a folder of the pipeline: %w", err)
		}
		*folder.to = files
	}
	return o, nil
}

// process is what all bundles of a worker share. It is global because Beam makes each copy of
// the transform from its text and hands it nothing else.
var process struct {
	sync.Mutex
	complete func(*rankd.Options)   // of Register
	engines  map[string]*openEngine // by Config
}

// An openEngine is an engine that copies of the transform use. process guards users; any goroutine uses the rest.
type openEngine struct {
	*rankd.Engine
	config string
	users  int
}

// acquire returns the engine of a configuration. It opens the engine if no other copy has.
func acquire(c *Config) (engine *openEngine, opened bool, err error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, false, err
	}
	process.Lock()
	defer process.Unlock()
	if e := process.engines[string(text)]; e != nil {
		e.users++
		return e, false, nil
	}
	o, err := c.options()
	if err != nil {
		return nil, false, err
	}
	if process.complete != nil {
		process.complete(&o)
	}
	one, err := rankd.Open(o)
	if err != nil {
		return nil, false, err
	}
	e := &openEngine{one, string(text), 1}
	if process.engines == nil {
		process.engines = make(map[string]*openEngine)
	}
	process.engines[e.config] = e
	return e, true, nil
}

// release closes the engine if no other copy uses it.
func (e *openEngine) release() error {
	process.Lock()
	defer process.Unlock()
	if e.users--; e.users > 0 {
		return nil
	}
	delete(process.engines, e.config)
	return e.Close()
}
