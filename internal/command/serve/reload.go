package serve

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/cmdline"
)

// reloading reads tokens and certificates again, after SIGHUP and after a change of their files, and plans, models and tables, after SIGHUP
// and with --watch after a change. One goroutine.
type reloading struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// startReloading begins to reload.
func (s *server) startReloading(o *options) *reloading {
	ctx, cancel := context.WithCancel(context.Background())
	r := &reloading{cancel: cancel}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	r.done.Go(func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				s.reload("SIGHUP")
				_, _ = s.reloadPlans(ctx, "SIGHUP", false) // The log has the error.
			}
		}
	})
	if o.watch {
		folders := o.watched()
		seen := cmdline.Stamp(folders...)
		r.done.Go(func() {
			for cmdline.Poll(ctx, watchEvery, &seen, folders...) == nil {
				_, _ = s.reloadPlans(ctx, "a change of a file", false)
			}
		})
	}
	files := slices.DeleteFunc([]string{o.tokens, o.tlsCert, o.tlsKey}, func(path string) bool { return path == "" })
	if len(files) == 0 {
		return r
	}
	watcher, err := watch(files)
	if err != nil {
		s.log.Warn("tokens and certificates are read again only after SIGHUP", "error", err)
		return r
	}
	r.done.Go(func() {
		defer watcher.Close()
		for {
			_, err := watcher.Changed(ctx, func(path string) bool { return concerns(path, files) })
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && !errors.Is(err, cmdline.ErrOverflow):
				s.log.Warn("tokens and certificates are read again only after SIGHUP", "error", err)
				return
			}
			s.reload("a change of a file")
		}
	})
	return r
}

// watchEvery is how often --watch looks at the files.
const watchEvery = 500 * time.Millisecond

// watched returns the folders that hold plans, models and tables.
func (o *options) watched() []string {
	folders := []string{o.PlansDir, o.RegistryDir, o.ModelDir}
	if o.PlanFile != "" {
		folders = append(folders, filepath.Dir(o.PlanFile))
	}
	return slices.DeleteFunc(folders, func(folder string) bool { return folder == "" })
}

// reloadPlans reads plans, models and tables again, or returns to those before. After an error they stay as they were. Any goroutine.
func (s *server) reloadPlans(ctx context.Context, why string, back bool) (rankd.Generation, error) {
	change, was := s.service.Reload, s.engine.Generation().Number
	if back {
		change = s.service.Back
	}
	g, err := change(ctx)
	switch {
	case err != nil:
		s.log.Error("the plans stay as they were", "after", why, "error", err)
	case g.Number == was:
		s.log.Info("the plans are as they were", "after", why, "generation", g.Number, "digest", g.Digest)
	default:
		s.log.Info("plans changed", "after", why, "generation", g.Number, "digest", g.Digest, "plans", len(g.Plans))
	}
	return g, err
}

// stop ends the reloading and waits for it.
func (r *reloading) stop() {
	r.cancel()
	r.done.Wait()
}

// watch returns a watcher of the folders of the files.
func watch(files []string) (*cmdline.Watcher, error) {
	watcher, err := cmdline.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := watcher.Add(files...); err != nil {
		return nil, errors.Join(err, watcher.Close())
	}
	return watcher, nil
}

// kubernetesData is the link that Kubernetes replaces when a mounted secret changes. The files in the folder are links through it.
const kubernetesData = "..data"

// concerns reports whether a change at path may change one of the files.
func concerns(path string, files []string) bool {
	return filepath.Base(path) == kubernetesData ||
		slices.ContainsFunc(files, func(file string) bool { return filepath.Clean(file) == path })
}

// reload reads tokens and certificates again. After an error they stay as they were. Any goroutine.
func (s *server) reload(why string) {
	if changed, err := s.store.Reload(); err != nil {
		s.log.Error("the tokens stay as they were", "after", why, "error", err)
	} else if changed {
		s.log.Info("tokens changed", "after", why, "tokens", len(s.store.Names()))
	}
	if s.certificates == nil {
		return
	}
	if changed, err := s.certificates.Reload(); err != nil {
		s.log.Error("the certificate stays as it was", "after", why, "error", err)
	} else if changed {
		s.log.Info("certificate changed", "after", why, "expires", s.certificates.Expires())
		s.checkCertificate()
	}
}
