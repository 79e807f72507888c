package supervisor

import (
	"fmt"
	"time"

	"github.com/workerlink/supervisor/internal/proc"
)

// How a life that is well is replaced: it wears out here, the keeper does the
// rest.

// wear says so, once, when the life is due for recycling.
func (k *look) wear() {
	v, r := k.vigil, k.vigil.cfg.recycle
	if k.worn || v.life.worn == nil {
		return
	}
	why := ""
	if r.MaxAge > 0 && time.Since(v.life.up) >= r.MaxAge {
		why = fmt.Sprintf("it is %v old", r.MaxAge)
	}
	if now := k.clock.Total(); r.MaxMemory > 0 && now >= k.memoryAt {
		k.memoryAt = now + slowestLook
		if size, err := proc.PrivateMemory(pidOf(v.life.link)); err == nil && size > r.MaxMemory { // an error is the end of the process
			why = fmt.Sprintf("it has %d MiB of its own", size>>20)
		}
	}
	if why != "" {
		k.worn = true
		v.life.wear(why)
	}
}

// wear makes the life due for recycling.
func (l *Life) wear(why string) {
	select {
	case l.worn <- why:
	default: // it is already
	}
}

// retire takes no further calls; the channel is closed when none is open.
func (l *Life) retire() (quiet <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.full = true
	if l.quiet == nil {
		l.quiet = make(chan struct{})
		l.checkQuietLocked()
	}
	return l.quiet
}

func (l *Life) checkQuietLocked() {
	if l.quiet != nil && l.open.next == &l.open {
		select {
		case <-l.quiet:
		default:
			close(l.quiet)
		}
	}
}
