package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// open locks the output, and brings its files to where the last checkpoint was.
func (r *running) open(ctx context.Context) (err error) {
	if r.streams() {
		return r.openStream(ctx)
	}
	for _, path := range []string{r.Out, r.Checkpoints, r.Failed} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
	}
	r.checkpoints, err = openCheckpoints(r.disk, r.Checkpoints)
	if err != nil {
		return err
	}
	c, asked := r.checkpoints, r.depends()
	begun := c.last.State != ""
	if begun && !r.Restart {
		if err = c.refuse(asked); err != nil && c.last.State == stateNew { // It has nothing that could mix.
			begun, err = false, nil
		}
	} else if begun && r.lists != nil {
		err = r.lists.discard(c.last.Summary.Version, c.last.ID)
	} else if !r.Restart {
		err = c.damaged
	}
	if err != nil {
		return err
	}
	r.checkpoint = c.last
	if !begun || r.Restart {
		if err := r.disk.remove(r.path("users"), r.path("retry")+partial, r.Out+retried+partial); err != nil {
			return err
		}
		r.checkpoint = checkpoint{State: stateNew, ID: c.process, Asked: asked}
		if r.lists != nil {
			r.Summary.Version = cmp.Or(r.lists.Version, r.start.UnixMilli())
		}
		if err := c.add(r.checkpoint); err != nil {
			return err
		}
	}
	r.kept = r.Summary.Users
	if r.lists != nil {
		r.lists.Version, r.lists.id = r.Summary.Version, r.ID
		if r.State == stateNew {
			err = r.lists.begin()
		} else {
			err = r.lists.there()
		}
	} else if r.State != stateWhole {
		r.answers, err = openOutput(r.disk, r.Out, r.AnswerBytes)
	}
	if err == nil && r.State != stateWhole {
		r.failures, err = openOutput(r.disk, r.Failed, r.FailedBytes)
	}
	if err == nil && r.RetryDegraded && r.State != stateWhole {
		r.retries, err = openOutput(r.disk, r.path("retry"), r.RetryBytes)
	}
	if err == nil && r.State == stateNew {
		r.State = stateRanking
	}
	if err == nil {
		err = c.add(r.checkpoint) // It names this process.
	}
	return err
}

// depends returns what the answers depend on.
func (r *running) depends() map[string]string {
	asked := map[string]string{"response": fmt.Sprint(r.Format), "share": r.share(), "retry of degraded users": strconv.FormatBool(r.RetryDegraded)}
	maps.Copy(asked, r.Engine.Generation().Parts)
	maps.Copy(asked, r.Settings)
	if r.Scan != nil {
		asked["users"] = r.Scan.text
	}
	if r.lists != nil {
		asked["lists"] = r.lists.Key
		if r.Lists.Version != 0 {
			asked["version"] = strconv.FormatInt(r.Lists.Version, 10)
		}
	}
	return asked
}

// openStream opens a device or a named pipe, whose reader may come later.
func (r *running) openStream(ctx context.Context) error {
	if r.RetryDegraded {
		return fmt.Errorf("%s is not a file, so users cannot be tried again in their place", r.Out)
	}
	r.Warn(fmt.Sprintf("%s is not a file: it gets the answers as they come, a batch that ends early cannot go on, and users that fail are only counted", r.Out))
	type opened struct {
		file *os.File
		err  error
	}
	open := make(chan opened, 1)
	go func() {
		f, err := os.OpenFile(r.Out, os.O_WRONLY, 0)
		open <- opened{f, err}
	}()
	select {
	case o := <-open:
		if o.err != nil {
			return o.err
		}
		r.State, r.answers = stateRanking, newOutput(r.disk, r.Out, o.file)
		context.AfterFunc(ctx, r.answers.close) // A write may wait for its reader.
		return nil
	case <-ctx.Done():
		return context.Cause(ctx) // The goroutine stays until a reader comes.
	}
}

// close lets go of all files, and of the lock.
func (r *running) close() {
	r.answers.close()
	r.failures.close()
	r.retries.close()
	if r.checkpoints != nil {
		_ = r.checkpoints.file.Close()
	}
	if r.Users == nil && r.users != nil { // the file that a Scan has written
		r.users.Close()
	}
}

// reach writes a checkpoint, once all that it counts is safe.
func (r *running) reach(next state) error {
	if r.State == stateRanking {
		if err := r.users.changed(); err != nil {
			return err
		}
		r.Digest, r.Source = r.documents.Sum64(), r.users.source()
	}
	if r.checkpoints == nil {
		r.State = next
		return r.answers.to.Flush()
	}
	if r.lists != nil {
		if err := errors.Join(r.lists.flush(nil), r.lists.there()); err != nil {
			return err
		}
	}
	for _, o := range []struct {
		to    *output
		bytes *int64
	}{{r.answers, &r.AnswerBytes}, {r.failures, &r.FailedBytes}, {r.retries, &r.RetryBytes}} {
		if o.to == nil {
			continue
		}
		if err := o.to.sync(); err != nil {
			return err
		}
		*o.bytes = o.to.bytes
	}
	if err := r.syncFolders(); err != nil {
		return err
	}
	r.State = next
	return r.checkpoints.add(r.checkpoint)
}

// syncFolders makes the names of the job's files survive a crash.
func (r *running) syncFolders() error {
	var synced []string
	for _, path := range []string{r.Checkpoints, r.Failed, cmp.Or(r.Out, r.Failed)} {
		if folder := filepath.Dir(path); !slices.Contains(synced, folder) {
			if err := r.disk.syncFolder(path); err != nil {
				return err
			}
			synced = append(synced, folder)
		}
	}
	return nil
}

// finish gives the output its name, and removes all else. Each step may have been done before.
func (r *running) finish() error {
	if r.checkpoints == nil {
		return r.Bounds.check(&r.Summary)
	}
	var err error
	if r.FailedBytes == 0 {
		err = r.disk.remove(r.Failed+partial, r.Failed)
	} else {
		err = r.disk.keep(r.Failed, r.FailedBytes)
	}
	if err == nil {
		err = r.Bounds.check(&r.Summary)
	}
	if err == nil && r.lists != nil {
		err = r.lists.swing()
	}
	if err == nil && r.lists == nil && r.RetryBytes > 0 {
		err = r.disk.rename(r.Out+retried+partial, r.Out+partial)
	}
	if err == nil && r.lists == nil {
		err = r.disk.keep(r.Out, r.AnswerBytes)
	}
	if err == nil {
		err = r.syncFolders()
	}
	if err == nil {
		err = r.disk.remove(r.path("users"), r.path("retry")+partial, r.Checkpoints)
	}
	if err == nil {
		err = r.disk.syncFolder(r.Checkpoints)
	}
	return err
}

// skip passes over the users that are done, which must be those that were ranked.
func (r *running) skip() error {
	if r.checkpoints == nil {
		return nil
	}
	for n := range r.Done {
		doc, _, _, err := r.next()
		if errors.Is(err, io.EOF) {
			return r.checkpoints.changed(fmt.Sprintf("there are %d users, and %d were ranked (%s)", n, r.Done, r.sources()))
		}
		if err != nil {
			return err
		}
		r.hear(doc)
	}
	if r.Done > 0 && r.Digest != r.documents.Sum64() {
		return r.checkpoints.changed(fmt.Sprintf("the first %d users are others than those that were ranked (%s)", r.Done, r.sources()))
	}
	r.begun = r.users.Read()
	if r.State != stateRanking {
		if _, _, _, err := r.next(); !errors.Is(err, io.EOF) {
			return cmp.Or(err, r.checkpoints.changed(fmt.Sprintf("there are more users than the %d that were ranked (%s)", r.Done, r.sources())))
		}
	}
	return nil
}

// sources says what the file of users was, and what it is.
func (r *running) sources() string {
	return fmt.Sprintf("the users: %v, now %v", r.checkpoint.Source, r.users.source())
}

// hear adds the document of a user to the digest.
func (r *running) hear(doc []byte) {
	_, _ = r.documents.Write(doc) // A hash has no errors.
	_, _ = r.documents.WriteString("\n")
}
