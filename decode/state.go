package decode

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime/debug"
	"strings"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/snapshot"
)

// Errors of LoadState, which wraps them.
var (
	ErrNotAState     = snapshot.ErrNotAState // the file is something else
	ErrStateDamaged  = snapshot.ErrDamaged   // it was cut short or changed
	ErrStateKey      = snapshot.ErrKey       // StateOptions.Key is another one
	ErrStateNoKey    = snapshot.ErrNoKey     // StateOptions.Key is set, and the file was made without
	ErrStateVersion  = snapshot.ErrVersion   // another version of the program has made it
	ErrStateSettings = snapshot.ErrSettings  // it was made with other Options; the text says which
	ErrStateLimit    = snapshot.ErrLimit     // it holds more than StateOptions.Limit
)

// StatePart is something besides the Decoder whose state is saved with it. *rpc.Names, *fabric.Recorder and
// *session.Recorder are such parts.
type StatePart = snapshot.Part

// StateNote is a text with a name.
type StateNote = snapshot.Pair

// StateOptions are for SaveState and LoadState.
type StateOptions struct {
	// Parts are saved and restored, too: those of LoadState must be of the same types in the same order as those
	// of SaveState, and as yet unused.
	Parts []StatePart
	// Key, if set, signs the state: see SECURITY.md on who may write one.
	Key []byte
	// Settings are what the result depends on besides Options: a state with others is refused.
	Settings []StateNote
	// Notes go into the file and come back from LoadState.
	Notes []StateNote
	// Limit is how many bytes LoadState may take. 0 is four times Options.Memory and 256 MiB.
	Limit int
}

// Feed is Run for an input that another one continues: nothing ends with it. When it has returned nil, the next
// input can follow, or Flush, or SaveState; its packets must have higher numbers, see capture.Options.First. After
// an error, or Stop, only Flush makes sense. One tracker follows all connections, whatever Options.Trackers says.
func (d *Decoder) Feed(r capture.Reader) error { return d.decode(r, false) }

// SaveState writes all that the Decoder knows, after Feed or Batch. A new Decoder with the same Options that
// restores it goes on as if it were this one: connections and their numbers, transactions under way, reassembly,
// counts. Functions and interfaces in Options are not part of a state; what they know can be, by
// StateOptions.Parts. The Decoder may go on afterwards.
func (d *Decoder) SaveState(w io.Writer, opt StateOptions) error {
	if d.groups != nil {
		return errors.New("trackers side by side cannot be saved")
	}
	p, f := d.plan(&opt)
	return p.Save(w, f)
}

// LoadState restores what SaveState has written, in a Decoder that has seen no packet. After an error the Decoder
// and the Parts are not to be used. It returns the Notes, also with ErrStateVersion and ErrStateSettings.
//
// A state says what a Decoder believes, which cannot be verified: with a forged one, decoding may panic or not end.
// Load those only that you trust, or that were signed by StateOptions.Key.
func (d *Decoder) LoadState(state []byte, opt StateOptions) ([]StateNote, error) {
	if d.stats.Packets > 0 {
		return nil, errors.New("a state can be restored only before the first packet")
	}
	p, f := d.plan(&opt)
	return p.Load(state, f)
}

// StateNotes returns StateOptions.Notes of a state, after its checksum or signature was checked.
func StateNotes(state []byte, opt StateOptions) ([]StateNote, error) {
	return snapshot.Notes(state, snapshot.Options{Key: opt.Key})
}

// plan says what belongs to the state.
func (d *Decoder) plan(opt *StateOptions) (*snapshot.Plan, snapshot.Options) {
	p := snapshot.NewPlan(buildVersion())
	p.Fixed(d)
	// What is open of a kernel's events is not saved: their text has to be read from its beginning.
	snapshot.Leave[Decoder](p, "traced", "opt", "frags", "inIB", "at", "memory", "stop", "observer", "emit", "group", "groups", "handover", "single", "joined", "view")
	d.tx.Snapshot(p)
	d.roce.Snapshot(p)
	snapshot.Leave[tcpDemux](p, "h", "tracer", "iwarp", "pool", "limit", "memory", "last", "attempt")
	h := d.tcp.h.(*numbered)
	p.Fixed(h)
	snapshot.Leave[numbered](p, "Handler", "numbers")
	d.tcp.last = nil
	d.tcp.pool.Snapshot(p)
	d.tcp.iwarp.Snapshot(p)
	oncrpc.SnapshotTCP(p)
	snapshot.Leave[udpDemux](p, "h", "numbers", "send", "memory")
	snapshot.Leave[tunnels](p, "frame", "lastTap", "tapOf", "recent")
	snapshot.Leave[sequences](p, "recent")
	for _, r := range d.frags {
		r.Snapshot(p)
	}
	d.memory.budget.Snapshot(p)
	rdma.Snapshot(p)
	var parts []string
	for _, x := range opt.Parts {
		x.Snapshot(p)
		parts = append(parts, fmt.Sprintf("%T", x))
	}
	f := snapshot.Options{Key: opt.Key, Limit: opt.Limit, Notes: opt.Notes}
	if f.Limit <= 0 {
		f.Limit = 4*d.memory.budget.Limit() + 256<<20
	}
	o := d.opt
	o.Observers = nil // what counts is what they are told together
	f.Settings = settings(nil, "", reflect.ValueOf(o))
	f.Settings = settings(f.Settings, "Observers.", reflect.ValueOf(d.observer))
	f.Settings = append(f.Settings, snapshot.Pair{Name: "Parts", Value: strings.Join(parts, " ")})
	f.Settings = append(f.Settings, opt.Settings...)
	return p, f
}

// settings lists the fields of Options by name. Of functions and interfaces only counts whether they are set.
func settings(list []snapshot.Pair, name string, v reflect.Value) []snapshot.Pair {
	for i := range v.NumField() {
		f, x := v.Type().Field(i), v.Field(i)
		name := name + f.Name
		switch x.Kind() {
		case reflect.Struct:
			list = settings(list, name+".", x)
		case reflect.Func, reflect.Interface, reflect.Pointer:
			set := "not set"
			if !x.IsNil() {
				set = "set"
			}
			list = append(list, snapshot.Pair{Name: name, Value: set})
		default:
			list = append(list, snapshot.Pair{Name: name, Value: fmt.Sprint(x)})
		}
	}
	return list
}

// buildVersion is the version of the program, as far as the linker knows it.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
			v += " " + s.Value
		}
	}
	return v
}
