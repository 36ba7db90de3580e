package cli

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// NoZone is a note for users who ask for local times, if they are UTC only because the time zone that TZ names cannot be
// found: package time knows no rules such as CET-1CEST (POSIX), and no names on a system without a database of zones.
// Otherwise it is empty.
func NoZone() string {
	tz := os.Getenv("TZ")
	if name := strings.TrimPrefix(tz, ":"); name == "" || name == "UTC" || name == "UTC0" || time.Local.String() != "UTC" {
		return ""
	}
	return fmt.Sprintf("note: TZ=%s names no time zone that is known here: local times are UTC", tz)
}
