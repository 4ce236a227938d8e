//go:build bench

package bench

import (
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	profileFlag     = flag.String("profile", "", "file for the CPU profile of TestProfile")
	profileOfFlag   = flag.String("profile-figure", "callback-100", "the figure whose program is profiled")
	profileModeFlag = flag.String("profile-mode", "callback", "the form of ours that is profiled")
)

// TestProfile runs ours as a figure does, and writes where its CPU time goes.
func TestProfile(t *testing.T) {
	require.NotEmpty(t, *profileFlag, "-profile FILE: where the profile goes; run this with make profile")
	all := figures()
	i := slices.IndexFunc(all, func(f figure) bool { return f.id == *profileOfFlag })
	require.GreaterOrEqual(t, i, 0, "-profile-figure %s: there is none of this name", *profileOfFlag)
	f := all[i].scaled(*scaleFlag)
	s, err := f.open(t.Context())
	require.NoError(t, err)
	defer s.close()
	p, err := ourProgram()
	require.NoError(t, err)
	set := f.settings
	set.Lib, set.Mode, set.Profile = "kbench", *profileModeFlag, *profileFlag
	l, err := s.once(t.Context(), p, set)
	require.NoError(t, err)
	_, err = os.Stdout.WriteString(f.id + " " + f.say(l) + "\n")
	require.NoError(t, err)
}
