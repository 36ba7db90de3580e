package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// Crash is an attempt whose worker vanished.
type Crash struct {
	Worker string    `json:"worker"`
	Time   time.Time `json:"time"` // when it was noticed
	Reason string    `json:"reason"`
}

// Record is what the queue remembers of a unit.
type Record struct {
	State    State     `json:"state"`
	Job      string    `json:"job"`
	Worker   string    `json:"worker,omitempty"` // who has it, or had it last
	Since    time.Time `json:"since"`
	Ended    string    `json:"ended,omitempty"`    // how the worker ended while it had the unit, if somebody saw it
	Crashes  []Crash   `json:"crashes,omitempty"`  // of all attempts
	Failures int       `json:"failures,omitempty"` // attempts since the last submission that ended in an error
	Reason   string    `json:"reason,omitempty"`   // the last error
}

func (r *Record) encode() ([]byte, error) {
	b, err := json.Marshal(r)
	if err == nil && len(b) > maxRecord {
		err = tooLong("a record", len(b), maxRecord)
	}
	return b, err
}

// decodeRecord reads what a worker wrote; workers are not trusted with anything but their own units.
func decodeRecord(b []byte) (*Record, error) {
	r := &Record{}
	if err := strict("the record of a unit", b, maxRecord, r); err != nil {
		return nil, err
	}
	if !r.State.valid() {
		return nil, fmt.Errorf("%.40q is not the state of a unit", r.State)
	}
	if len(r.Crashes) > maxCrashes || r.Failures < 0 || r.Failures > lastDeliver {
		return nil, errors.New("counts that no worker writes")
	}
	if r.Worker != "" && !validWorker(r.Worker) {
		return nil, errors.New("a name that no worker has")
	}
	r.Reason, r.Ended = cut(r.Reason, maxReason), cut(r.Ended, maxReason)
	for i := range r.Crashes {
		r.Crashes[i].Reason = cut(r.Crashes[i].Reason, maxReason)
		r.Crashes[i].Worker = cut(r.Crashes[i].Worker, 120)
	}
	return r, nil
}

// maxReason is the length of a reason, in bytes.
const maxReason = 1000

// Progress is how far a worker is in its unit.
type Progress struct {
	File    int    `json:"file"`  // the file at hand, from 0
	Files   int    `json:"files"` // of the unit
	Bytes   int64  `json:"bytes"` // read
	Size    int64  `json:"size"`  // to be read
	Packets uint64 `json:"packets"`
}

// Sign is a sign of life.
type Sign struct {
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Done     int       `json:"done"`               // units since then
	Unit     string    `json:"unit,omitempty"`     // in work
	Job      string    `json:"job,omitempty"`      // of the unit
	Key      string    `json:"key,omitempty"`      // of the Task
	Since    time.Time `json:"since,omitzero"`     // when it took the unit
	Progress Progress  `json:"progress,omitzero"`  // in the unit
	Resident int64     `json:"resident,omitempty"` // bytes of memory
	Ack      string    `json:"ack,omitempty"`      // where the message of the unit is acknowledged
}

func (s *Sign) encode() ([]byte, error) { return json.Marshal(s) }

func decodeSign(b []byte) (*Sign, error) {
	s := &Sign{}
	if err := strict("the sign of a worker", b, maxRecord, s); err != nil {
		return nil, err
	}
	if s.Unit != "" && !layout.IsID(s.Unit) || s.Job != "" && !layout.IsID(s.Job) || s.Key != "" && !isKey(s.Key) {
		return nil, errors.New("an ID that no unit has")
	}
	if p := &s.Progress; min(s.PID, s.Done, p.File, p.Files-p.File) < 0 || min(s.Resident, p.Bytes, p.Size) < 0 {
		return nil, errors.New("counts that no worker writes")
	}
	s.Host, s.Version = cut(s.Host, 120), cut(s.Version, 200)
	return s, nil
}
