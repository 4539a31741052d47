collect_ignore_glob = ["*"]  # the host, its run folders and what they install are no tests of ours
