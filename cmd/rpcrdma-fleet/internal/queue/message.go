package queue

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// Task names a unit: the store of its results, the job that it belongs to, and its ID.
type Task struct {
	Store string `json:"store"` // URL
	Job   string `json:"job"`
	Unit  string `json:"unit"`
}

// Key names the unit among those of all stores: its record, and the subject of its message.
func (t Task) Key() string {
	name, query, _ := strings.Cut(t.Store, "?")
	h := sha256.Sum256([]byte(strings.TrimRight(name, "/") + "?" + query))
	return hex.EncodeToString(h[:8]) + "-" + t.Unit
}

type message struct {
	Version int `json:"version"`
	Task
}

const messageVersion = 1

func (t Task) encode() ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(message{messageVersion, t})
	if err == nil && len(b) > maxMessage {
		err = tooLong("the message of a unit", len(b), maxMessage)
	}
	return b, err
}

// errNewer says that a message is one of a later version of the program.
var errNewer = errors.New("a later version of this program wrote it")

// decodeTask reads a message of the queue. Anybody who may publish can have written it.
func decodeTask(subj string, b []byte) (Task, error) {
	var v struct {
		Version int `json:"version"`
	}
	if len(b) <= maxMessage && json.Unmarshal(b, &v) == nil && v.Version > messageVersion {
		return Task{}, errNewer
	}
	var m message
	if err := strict("the message", b, maxMessage, &m); err != nil {
		return Task{}, err
	}
	if m.Version != messageVersion {
		return Task{}, fmt.Errorf("version %d of messages, this program knows %d", m.Version, messageVersion)
	}
	if err := m.check(); err != nil {
		return Task{}, err
	}
	if subj != subject(m.Task) {
		return Task{}, errors.New("the subject names another unit than the message")
	}
	return m.Task, nil
}

func (t Task) check() error {
	if !layout.IsID(t.Job) {
		return fmt.Errorf("%.100q is not an ID of a job", t.Job)
	}
	if !layout.IsID(t.Unit) {
		return fmt.Errorf("%.100q is not an ID of a unit", t.Unit)
	}
	u, err := url.Parse(t.Store)
	if err != nil || u.Scheme == "" {
		return errors.New("the store is not a URL")
	}
	return nil
}
