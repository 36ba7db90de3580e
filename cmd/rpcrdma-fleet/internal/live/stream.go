package live

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Names in NATS. docs/fleet.md lists who needs which.
const (
	StreamName = "RPCRDMA_LIVE"
	prefix     = "rpcrdma.live."
)

// Limits of the stream. Whoever creates it first decides; another may have set others
// with the tools of NATS.
const (
	keepFor   = time.Hour
	keepBytes = 1 << 30
)

// subject returns the subject on which an agent publishes. The tap is in hex, since its name may have any characters.
func subject(tap, agent string) string {
	return prefix + hex.EncodeToString([]byte(tap)) + "." + agent
}

// SubjectOf is the subject of a summary.
func SubjectOf(s *Summary) string { return subject(s.Tap, s.Agent) }

// PublishTo is the subject that the agent of a tap publishes to, for permissions.
func PublishTo(tap string) string { return prefix + hex.EncodeToString([]byte(tap)) + ".*" }

// stream finds the stream, or creates it.
func stream(ctx context.Context, nc *nats.Conn, replicas int) (jetstream.JetStream, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	_, err = js.Stream(ctx, StreamName)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: StreamName, Subjects: []string{prefix + "*.*"}, Description: "summaries of taps: rpcrdma-fleet agent",
			MaxAge: keepFor, MaxBytes: keepBytes, MaxMsgSize: MaxSummary, Discard: jetstream.DiscardOld,
			Replicas: max(replicas, 1), Duplicates: 2 * time.Minute,
		})
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			err = nil // by another agent, at the same time
		}
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", StreamName, err)
	}
	return js, nil
}

// wrongLast reports the server's refusal of a message that does not follow the last
// one of its subject.
func wrongLast(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// passing reports whether trying again may help.
func passing(err error) bool {
	return err != nil && !strings.Contains(err.Error(), "permissions violation") && !errors.Is(err, nats.ErrAuthorization) &&
		!errors.Is(err, nats.ErrConnectionClosed) // it is closed for good
}
