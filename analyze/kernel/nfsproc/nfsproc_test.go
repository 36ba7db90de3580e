package nfsproc

import (
	"strings"
	"testing"
)

func TestCandidates(t *testing.T) {
	for _, c := range []struct {
		minor uint32
		ops   string
		want  string
	}{
		{1, "SEQUENCE PUTFH READ", "READ"},
		{0, "PUTFH READ", "READ"},
		{1, "PUTFH READ", ""},
		{1, "SEQUENCE", "SEQUENCE"},
		{1, "EXCHANGE_ID", "EXCHANGE_ID"},
		{1, "SEQUENCE PUTFH GETATTR", "FSINFO FS_LOCATIONS GETACL GETATTR PATHCONF SERVER_CAPS STATFS"},
		{1, "SEQUENCE PUTFH OPEN GETFH ACCESS GETATTR", "OPEN"},
		{1, "SEQUENCE PUTFH OPEN ACCESS GETATTR", "OPEN_NOATTR"},
		{1, "SEQUENCE PUTFH CREATE GETFH GETATTR", "CREATE SYMLINK"},
		{1, "SEQUENCE PUTFH WRITE VERIFY", ""},
	} {
		if got := strings.Join(Candidates(c.minor, strings.Fields(c.ops)), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.ops, got, c.want)
		}
	}
}

func TestMatchesShort(t *testing.T) {
	if !Matches("OPEN", 1, strings.Fields("SEQUENCE PUTFH OPEN"), true) {
		t.Error("an OPEN that failed")
	}
	if Matches("OPEN", 1, strings.Fields("SEQUENCE PUTFH OPEN"), false) || Matches("OPEN", 1, strings.Fields("SEQUENCE PUTFH READ"), true) {
		t.Error("what is no OPEN")
	}
	if Matches("NO_SUCH", 0, nil, true) {
		t.Error("an unknown procedure")
	}
}
