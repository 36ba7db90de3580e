package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Folders of the store. All names end with a slash.
const (
	Jobs         = "jobs/"
	Units        = "units/"
	Transactions = "transactions/"
	Taps         = "taps/"
)

const (
	idBytes = 16
	// MaxTap is how many bytes the name of a tap has at most.
	MaxTap = 128
	// MaxParts is how many Parquet files a unit has at most.
	MaxParts = 1_000_000
)

// id is the identity of contents: the first 128 bits of their SHA-256, in hex.
func id(contents []byte) string {
	sum := sha256.Sum256(contents)
	return hex.EncodeToString(sum[:idBytes])
}

// IsID reports whether s can be the ID of a job or a unit. Only such may become part of an object's name.
func IsID(s string) bool {
	if len(s) != 2*idBytes {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// IsHash reports whether s is a SHA-256 in hex.
func IsHash(s string) bool { return len(s) == 64 && IsID(s[:32]) && IsID(s[32:]) }

// JobName is the name of a Job's object.
func JobName(job string) string { return Jobs + job + "/job.json" }

// UnitFolder is where all objects of a unit are, except for transactions.
func UnitFolder(unit string) string { return Units + unit + "/" }

// UnitName is the name of a Unit's object.
func UnitName(unit string) string { return UnitFolder(unit) + "unit.json" }

// ProgressName is the name of the object with which another worker goes on.
func ProgressName(unit string) string { return UnitFolder(unit) + "progress" }

// ResumeName is the name of the object with which the unit that follows goes on.
func ResumeName(unit string) string { return UnitFolder(unit) + "resume" }

// HeadName is the name of a Head's object.
func HeadName(tap string) string { return Taps + escape(tap) + "/head.json" }

// ManifestName is the name of a Manifest's object.
func ManifestName(tap string) string { return Taps + escape(tap) + "/manifest.json" }

// StateName is the name of the object with the state of a unit.
func StateName(unit string) string { return UnitFolder(unit) + "state" }

// EndedName is the name of an object with what a unit found of connections that have ended. A unit numbers them from 0.
func EndedName(unit string, n int) string { return fmt.Sprintf("%sended-%d", UnitFolder(unit), n) }

// DoneName is the name of a Done's object.
func DoneName(unit string) string { return UnitFolder(unit) + "done.json" }

// FailedFolder has the failures of a unit.
func FailedFolder(unit string) string { return UnitFolder(unit) + "failed/" }

// FailedName is the name of a Failure's object.
func FailedName(unit string, attempt int) string {
	return fmt.Sprintf("%s%d.json", FailedFolder(unit), attempt)
}

// AsideName is the name of an Aside's object.
func AsideName(unit string) string { return UnitFolder(unit) + "aside.json" }

// DayOf is the day, in UTC, of a time in nanoseconds since 1970.
func DayOf(ns int64) string { return time.Unix(0, ns).UTC().Format(time.DateOnly) }

// PartFolder has the Parquet files of a tap and a day.
func PartFolder(day, tap string) string {
	return Transactions + "day=" + day + "/tap=" + escape(tap) + "/"
}

// DayFolder is the folder of a tap within the folder of a day, as a list of Transactions names it.
func DayFolder(name, tap string) (folder string, ok bool) {
	day, ok := strings.CutPrefix(strings.TrimSuffix(name, "/"), Transactions+"day=")
	if _, err := time.Parse(time.DateOnly, day); !ok || err != nil {
		return "", false
	}
	return PartFolder(day, tap), true
}

// PartName is the name of a Parquet file. A unit numbers its files from 0.
func PartName(day, tap, unit string, part int) string {
	return fmt.Sprintf("%s%s-%d.parquet", PartFolder(day, tap), unit, part)
}

// escape writes what may not stand in the name of a folder as %XX, as Hive does.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// CheckTap says what is wrong with the name of a tap.
func CheckTap(tap string) error {
	switch {
	case tap == "":
		return errors.New("a tap has a name")
	case len(tap) > MaxTap:
		return fmt.Errorf("the name of a tap has %d bytes, more than %d", len(tap), MaxTap)
	case !utf8.ValidString(tap), strings.ContainsFunc(tap, unicode.IsControl):
		return fmt.Errorf("%q cannot be the name of a tap: it has control characters, or is not UTF-8", tap)
	}
	return nil
}
