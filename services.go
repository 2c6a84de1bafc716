package rankd

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rankd/rankd/internal/inference"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/scheduler/blocking"
)

// services has the endpoints whose model server has not said yet what its model takes. Any goroutine.
type services struct {
	mu     sync.Mutex
	silent map[*registry.Endpoint]error // why
	asking bool
}

// askServices asks the model servers of these endpoints what they serve, all at once. It returns the errors of those whose model is
// another than the tables say; the silent ones are noted.
func (e *Engine) askServices(ctx context.Context, endpoints []*registry.Endpoint) error {
	differ := make([]error, len(endpoints))
	var asked sync.WaitGroup
	for i, ep := range endpoints {
		if ep.Service.Dialect != registry.OpenInference {
			continue
		}
		asked.Go(func() {
			err := blocking.Ping(ctx, &e.config, ep)
			if errors.Is(err, inference.ErrDiffers) {
				differ[i] = fmt.Errorf("rankd: endpoint %s: %w", ep.ID, err)
			}
			s := &e.services
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.silent == nil {
				s.silent = make(map[*registry.Endpoint]error)
			}
			if s.silent[ep] = err; err == nil {
				delete(s.silent, ep)
			}
		})
	}
	asked.Wait()
	return errors.Join(differ...)
}

// heardServices returns why a model server is silent, or serves another model, as far as was heard. It has the silent ones asked again.
func (e *Engine) heardServices() (err error) {
	s := &e.services
	s.mu.Lock()
	defer s.mu.Unlock()
	var again []*registry.Endpoint
	for _, ep := range e.Registry().Endpoints() {
		if why := s.silent[ep]; why != nil {
			if again = append(again, ep); err == nil {
				err = fmt.Errorf("endpoint %s has not said which model it serves: %w", ep.Name, why)
			}
		}
	}
	if again != nil && !s.asking {
		s.asking = e.kept.Go(func(ctx context.Context) {
			_ = e.askServices(ctx, again) // It is noted.
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asking = false
		})
	}
	return err
}
