run "a_server_boots" {
  assert {
    condition     = openstack_compute_instance_v2.web.power_state == "active"
    error_message = "It does not run."
  }

  assert {
    condition     = startswith(openstack_compute_instance_v2.web.access_ip_v4, "10.9.0.")
    error_message = "It is not on its network."
  }
}

run "another_name_is_a_change_and_no_new_server" {
  variables {
    name = "shop"
  }

  assert {
    condition     = openstack_compute_instance_v2.web.id == run.a_server_boots.id
    error_message = "It was made anew."
  }
}
